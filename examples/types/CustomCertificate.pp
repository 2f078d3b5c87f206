# A certificate of your own, with its key as a secret of the configuration.
config "fullchain" "string" {
}

config "privateKey" "string" {
  secret = true
}

resource "app" "machines:index:App" {
}

resource "certificate" "machines:index:CustomCertificate" {
  app        = app.id
  hostname   = "own.example.com"
  fullchain  = fullchain
  privateKey = privateKey
}

output "dnsRecords" {
  value = certificate.dnsRecords
}
