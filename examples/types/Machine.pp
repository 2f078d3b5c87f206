# A Machine that serves the web, with a check that each new version must pass.
resource "app" "machines:index:App" {
}

resource "web" "machines:index:Machine" {
  app    = app.id
  region = "ams"
  config = {
    image = "registry.example.com/shop:1.0.0"
    guest = {
      cpuKind  = "shared"
      cpus     = 1
      memoryMb = 256
    }
    env = {
      GREETING = "hello"
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
  onUpdateFailure = "rollback"
}

output "address" {
  value = web.privateIp
}
