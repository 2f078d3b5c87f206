# A text in Base64 that only the App can read, encrypted with a key that never leaves the service.
resource "app" "machines:index:App" {
}

resource "key" "machines:index:SecretKey" {
  app  = app.id
  name = "LETTERS"
  type = "xaes256gcm"
}

resource "letter" "machines:index:Ciphertext" {
  app          = app.id
  key          = key.id
  keyUpdatedAt = key.updatedAt
  plaintext    = "Zm9yIHlvdXIgZXllcyBvbmx5"
}

output "ciphertext" {
  value = letter.ciphertext
}
