# A secret of an App, and a Machine that starts again with it when it changes.
config "apiKey" "string" {
  secret = true
}

resource "app" "machines:index:App" {
}

resource "secret" "machines:index:Secret" {
  app   = app.id
  name  = "API_KEY"
  value = apiKey
}

resource "web" "machines:index:Machine" {
  app               = app.id
  region            = "ams"
  minSecretsVersion = secret.version
  config = {
    image = "registry.example.com/shop:1.0.0"
  }
}
