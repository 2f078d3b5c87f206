# A snapshot of a volume, and another one whenever `release` changes.
resource "app" "machines:index:App" {
}

resource "data" "machines:index:Volume" {
  app    = app.id
  region = "ams"
  sizeGb = 1
}

resource "snapshot" "machines:index:VolumeSnapshot" {
  app    = app.id
  volume = data.id
  triggers = {
    release = "1"
  }
}
