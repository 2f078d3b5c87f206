# Metadata of a Machine that is written without a new version of it.
resource "app" "machines:index:App" {
}

resource "web" "machines:index:Machine" {
  app    = app.id
  region = "ams"
  config = {
    image = "registry.example.com/shop:1.0.0"
  }
}

resource "owner" "machines:index:MachineMetadata" {
  app     = app.id
  machine = web.id
  values = {
    team = "shop"
  }
}
