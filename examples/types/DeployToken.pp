# A token with which a workflow deploys this App and no other, and a new one for every `month`.
resource "app" "machines:index:App" {
}

resource "deploy" "machines:index:DeployToken" {
  app    = app.id
  expiry = "720h"
  rotationTriggers = {
    month = "2026-11"
  }
}

output "token" {
  value = deploy.token
}
