import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { podHarness } from "../../testing/agent/pod-harness.ts";
import { removeOrphanedPodFiles } from "./orphaned-pod-files.ts";

t.test("removeOrphanedPodFiles() removes the files of pods without a worker, and no others", async (t) => {
  const rootDir = await mkdtemp(join(tmpdir(), "svc-orphans-"));
  t.teardown(() => rm(rootDir, { recursive: true, force: true }));
  const directories = { rootDir, podLogsDir: join(rootDir, "logs") };
  const logs = ["default_web_active", "default_web_orphan", "not-a-pods", "a_b_c_d"];
  for (const path of ["pods/active", "pods/orphan", ...logs.map((name) => `logs/${name}`)]) {
    await mkdir(join(rootDir, path), { recursive: true });
  }
  const removed: string[] = [];
  await removeOrphanedPodFiles({
    directories,
    volumes: { tearDown: async (uid) => void removed.push(`volumes of ${uid}`) },
    cgroups: { remove: async (uid) => void removed.push(`cgroups of ${uid}`) },
    hasWorker: (uid) => uid === "active",
  });
  t.same(removed, ["cgroups of orphan", "volumes of orphan"]);
  t.same(await readdir(directories.podLogsDir), ["a_b_c_d", "default_web_active", "not-a-pods"]);
  await removeOrphanedPodFiles({
    directories: { rootDir: join(rootDir, "absent"), podLogsDir: join(rootDir, "absent") },
    volumes: { tearDown: async () => void t.fail("there is nothing") },
    cgroups: { remove: async () => void t.fail("there is nothing") },
    hasWorker: () => false,
  });
});

t.test("PodManager.removeOrphanedPodFiles() removes the rest when one fails, and logs a failure once", async (t) => {
  await using at = await podHarness();
  for (const path of ["pods/stuck", "pods/other", "logs/default_web_gone"]) {
    await mkdir(join(at.rootDir, path), { recursive: true });
  }
  const lines: string[] = [];
  const removed: string[] = [];
  let isStuck = true;
  Object.assign(at.services, {
    cgroups: {
      remove: async (uid: string) => {
        if (uid === "stuck" && isStuck) throw new Error("busy");
        removed.push(uid);
      },
    },
    log: { ...silentLogger, warn: (message: string) => void lines.push(message) },
  });
  for (let round = 0; round < 3; round++) await at.manager.removeOrphanedPodFiles();
  t.equal(lines.length, 1);
  t.same(removed, ["other"]);
  t.same(await readdir(join(at.rootDir, "logs")), []);
  await mkdir(join(at.rootDir, "pods/stuck"), { recursive: true });
  isStuck = false;
  await at.manager.removeOrphanedPodFiles();
  t.ok(removed.includes("stuck"));
  t.equal(lines.length, 1);
});
