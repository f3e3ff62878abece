import { lstat, mkdir, readdir, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { logLinkName } from "./log-links.ts";

t.test("each started container has a link to its log, which goes with the log", async (t) => {
  await using at = await podHarness();
  const containerLogsDir = join(at.rootDir, "containers");
  Object.assign(at.services.settings.directories, { containerLogsDir });
  at.manager.put(testPod("web"));
  await at.run(3);
  const [run] = at.manager.worker("uid-web")?.observation.containers ?? [];
  const link = join(containerLogsDir, `web_default_c-${run?.id}.log`);
  t.equal(await readlink(link), run?.logPath);
  await mkdir(dirname(run?.logPath ?? ""), { recursive: true });
  await writeFile(run?.logPath ?? "", "");
  await symlink("/nowhere", join(containerLogsDir, "other.log"));
  await at.manager.removeOrphanedPodFiles();
  t.ok((await lstat(link)).isSymbolicLink(), "the log exists");
  await rm(run?.logPath ?? "");
  await at.manager.removeOrphanedPodFiles();
  t.same(await readdir(containerLogsDir), ["other.log"], "links of other programs stay");
});

t.test("logLinkName() cuts names that a file cannot have", async (t) => {
  const name = logLinkName(testPod("p".repeat(253)), "c", "id");
  t.equal(name.length, 255);
  t.ok(name.endsWith("p.log"));
});
