# A Postgres cluster that a destroy may delete.
resource "cluster" "machines:index:PostgresCluster" {
  region             = "fra"
  plan               = "basic"
  diskSizeGb         = 10
  pgMajorVersion     = "17"
  deletionProtection = false
}

output "clusterName" {
  value = cluster.name
}
