# A key that signs and never leaves the service, with a public part for those who check signatures.
resource "app" "machines:index:App" {
}

resource "signing" "machines:index:SecretKey" {
  app  = app.id
  name = "SIGNING"
  type = "es256"
}

output "publicKey" {
  value = signing.publicKey
}
