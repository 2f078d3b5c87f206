# A database with an extension that finds similar words.
resource "cluster" "machines:index:PostgresCluster" {
  region             = "fra"
  plan               = "basic"
  deletionProtection = false
}

resource "database" "machines:index:PostgresDatabase" {
  cluster = cluster.id
  name    = "shop"
}

resource "search" "machines:index:PostgresExtension" {
  cluster  = cluster.id
  database = database.id
  name     = "pg_trgm"
}
