# An App, which others of the organization find by its name.
resource "app" "machines:index:App" {
  name = "shop"
}

output "appName" {
  value = app.name
}
