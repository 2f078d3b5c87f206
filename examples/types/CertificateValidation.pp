# A certificate that is waited for, so that what depends on it begins with HTTPS.
resource "app" "machines:index:App" {
}

resource "certificate" "machines:index:AcmeCertificate" {
  app      = app.id
  hostname = "www.example.com"
}

resource "valid" "machines:index:CertificateValidation" {
  app      = app.id
  hostname = certificate.hostname
}

output "expiresAt" {
  value = valid.expiresAt
}
