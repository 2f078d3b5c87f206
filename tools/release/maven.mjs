// The Java SDK: what Maven Central wants of it.
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { mavenRepository, repositoryOption } from "../setup/maven.mjs";
import { plainContent } from "./sbom.mjs";
import { staged } from "./staged.mjs";

const PLUGINS = "org.apache.maven.plugins";
// The versions of the other plugins are in pom.xml, because every build uses them.
const SOURCES = `${PLUGINS}:maven-source-plugin:3.3.1:jar-no-fork`;
const JAVADOC = `${PLUGINS}:maven-javadoc-plugin:3.11.2:jar`;
const DEPENDENCIES = `${PLUGINS}:maven-dependency-plugin:3.8.1:list`;

/** Builds the jars; or says why it cannot. */
export async function packMaven({ target, version, seconds, env }) {
  const { dir: repository, reason } = await mavenRepository(env);
  if (repository === undefined) return { reason };
  say("  the SDK for Java …");
  return staged("sdk/java", async (folder) => {
    const options = [
      "--batch-mode",
      repositoryOption(repository),
      `-Dproject.build.outputTimestamp=${new Date(seconds * 1_000).toISOString()}`,
      // The comments are written by Pulumi's generator, which does not write them for javadoc's checks.
      ...["-Ddoclint=none", "-Dnotimestamp=true", "-Dquiet=true"],
      ...["-DincludeScope=runtime", `-DoutputFile=${path.join(folder, "dependencies.txt")}`],
    ];
    const { code, output } = await quiet("mvn", [...options, "package", SOURCES, JAVADOC, DEPENDENCIES], {
      cwd: folder,
      env,
      alive: "still building the Java SDK",
    });
    if (code !== 0 && /Could not transfer|Unknown host|Connection refused|timed out/.test(output))
      return { reason: "Maven's plugins cannot be downloaded: check the network and Maven's settings" };
    if (code !== 0) throw new Stop(`${tail(output, 40)}\nThe Java SDK could not be built.`);
    for (const kind of ["", "-sources", "-javadoc"]) {
      const name = `machines-${version}${kind}.jar`;
      fs.copyFileSync(path.join(folder, "target", name), path.join(target, name));
    }
    fs.copyFileSync(inRoot("sdk/java/pom.xml"), path.join(target, `machines-${version}.pom`));
    return { content: mavenContent(version, fs.readFileSync(path.join(folder, "dependencies.txt"), "utf8")) };
  });
}

/** What the SDK needs, as Maven chooses it. */
function mavenContent(version, list) {
  const found = [...list.matchAll(/^\s+([\w.-]+):([\w.-]+):jar:([\w.-]+):(?:compile|runtime)/gm)];
  const parts = found.map(([, group, artifact, of]) => ({
    ...{ name: `${group}:${artifact}`, version: of },
    purl: `pkg:maven/${group}/${artifact}@${of}`,
  }));
  const purl = `pkg:maven/io.github.pulumimachines/machines@${version}`;
  return plainContent({ name: "io.github.pulumimachines:machines", version, purl }, parts);
}
