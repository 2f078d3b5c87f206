# A database in a cluster.
resource "cluster" "machines:index:PostgresCluster" {
  region             = "fra"
  plan               = "basic"
  deletionProtection = false
}

resource "database" "machines:index:PostgresDatabase" {
  cluster = cluster.id
  name    = "shop"
}
