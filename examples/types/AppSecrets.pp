# Two secrets of an App, and a Machine that starts again with them when one changes.
config "apiKey" "string" {
  secret = true
}

resource "app" "machines:index:App" {
}

resource "secrets" "machines:index:AppSecrets" {
  app = app.id
  values = {
    API_KEY   = apiKey
    LOG_LEVEL = "info"
  }
}

resource "web" "machines:index:Machine" {
  app               = app.id
  region            = "ams"
  minSecretsVersion = secrets.version
  config = {
    image = "registry.example.com/shop:1.0.0"
  }
}
