# Three equal Machines in two regions, which get a new image one after the other.
resource "app" "machines:index:App" {
}

resource "web" "machines:index:Fleet" {
  app = app.id
  regions = {
    ams = 2
    iad = 1
  }
  config = {
    image = "registry.example.com/shop:1.0.0"
    guest = {
      cpuKind  = "shared"
      cpus     = 1
      memoryMb = 256
    }
    services = [{
      protocol     = "tcp"
      internalPort = 8080
      ports = [{
        port     = 443
        handlers = ["http", "tls"]
      }]
      checks = [{
        type     = "http"
        path     = "/healthz"
        interval = "15s"
        timeout  = "2s"
      }]
    }]
  }
  strategy = {
    type           = "rolling"
    maxUnavailable = "1"
  }
  onFailure = "rollback"
}
