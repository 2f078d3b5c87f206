# A Machine that keeps its data on a volume of 10 GB.
resource "app" "machines:index:App" {
}

resource "data" "machines:index:Volume" {
  app    = app.id
  region = "ams"
  sizeGb = 10
}

resource "store" "machines:index:Machine" {
  app    = app.id
  region = "ams"
  config = {
    image = "registry.example.com/shop:1.0.0"
    mounts = [{
      volume = data.id
      path   = "/data"
    }]
  }
}
