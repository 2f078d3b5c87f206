# A certificate that the platform issues once the DNS has these records.
resource "app" "machines:index:App" {
}

resource "certificate" "machines:index:AcmeCertificate" {
  app      = app.id
  hostname = "www.example.com"
}

output "dnsRecords" {
  value = certificate.dnsRecords
}
