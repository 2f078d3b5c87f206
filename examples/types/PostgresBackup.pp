# A backup of a cluster, and another one whenever `release` changes.
resource "cluster" "machines:index:PostgresCluster" {
  region             = "fra"
  plan               = "basic"
  deletionProtection = false
}

resource "backup" "machines:index:PostgresBackup" {
  cluster = cluster.id
  triggers = {
    release = "1"
  }
}
