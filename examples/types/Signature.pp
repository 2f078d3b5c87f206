# The signature of a text in Base64 by a key that never leaves the service.
resource "app" "machines:index:App" {
}

resource "key" "machines:index:SecretKey" {
  app  = app.id
  name = "SIGNING"
  type = "es256"
}

resource "agreement" "machines:index:Signature" {
  app          = app.id
  key          = key.id
  keyUpdatedAt = key.updatedAt
  plaintext    = "SSBhZ3JlZQ=="
}

output "signature" {
  value = agreement.signature
}
