# The addresses at which an App is reached: one of its own, and one that Apps share.
resource "app" "machines:index:App" {
}

resource "v6" "machines:index:IpAssignment" {
  app  = app.id
  type = "v6"
}

resource "v4" "machines:index:IpAssignment" {
  app  = app.id
  type = "shared_v4"
}

output "ownAddress" {
  value = v6.ip
}

output "sharedAddress" {
  value = v4.ip
}
