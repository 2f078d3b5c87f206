# A Machine that connects to a cluster by the secret DATABASE_URL, also after a change of the password.
resource "cluster" "machines:index:PostgresCluster" {
  region             = "fra"
  plan               = "basic"
  deletionProtection = false
}

resource "database" "machines:index:PostgresDatabase" {
  cluster = cluster.id
  name    = "shop"
}

resource "user" "machines:index:PostgresUser" {
  cluster  = cluster.id
  username = "shop"
  role     = "schema_admin"
}

resource "app" "machines:index:App" {
}

resource "attachment" "machines:index:PostgresAttachment" {
  cluster    = cluster.id
  app        = app.id
  secretName = "DATABASE_URL"
  user       = user.id
  password   = user.password
  database   = database.id
}

resource "web" "machines:index:Machine" {
  app               = app.id
  region            = "fra"
  minSecretsVersion = attachment.secretsVersion
  config = {
    image = "registry.example.com/shop:1.0.0"
  }
}
