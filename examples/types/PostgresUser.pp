# A user with a password that the service generates, and generates again when `date` changes.
resource "cluster" "machines:index:PostgresCluster" {
  region             = "fra"
  plan               = "basic"
  deletionProtection = false
}

resource "user" "machines:index:PostgresUser" {
  cluster  = cluster.id
  username = "shop"
  role     = "writer"
  rotationTriggers = {
    date = "2026-11"
  }
}

output "password" {
  value = user.password
}
