# A command in a Machine that runs again whenever `release` changes.
resource "app" "machines:index:App" {
}

resource "web" "machines:index:Machine" {
  app    = app.id
  region = "ams"
  config = {
    image = "registry.example.com/shop:1.0.0"
  }
}

resource "migration" "machines:index:MachineCommand" {
  app     = app.id
  machine = web.id
  create  = ["echo", "the tables are new"]
  triggers = {
    release = "1"
  }
}

output "said" {
  value = migration.stdout
}
