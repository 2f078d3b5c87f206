# The release of a stack: the fleet runs its image with its settings, and later stacks get the same ones.
resource "release" "machines:index:Release" {
  image = "registry.example.com/shop:1.0.0"
  settings = {
    LOG_FORMAT = "json"
  }
}

resource "app" "machines:index:App" {
}

resource "web" "machines:index:Fleet" {
  app = app.id
  regions = {
    ams = 1
  }
  config = {
    image = release.image
    env   = release.settings
  }
}

output "digest" {
  value = release.digest
}
