/** Volumes of drivers as containers see them: a real containerd, real mounts, real devices. */

import { execFile } from "node:child_process";
import { mkdir, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { startFakeDriver } from "../../testing/agent/fake-csi-driver.ts";
import { createAgentConfig, findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { startAgent } from "../agent.ts";
import { systemMounter } from "./mount/mounter.ts";

const run = promisify(execFile);
const NAME = "disks.example.com";

/** Loop devices of this machine. */
async function loopDevice(file: string, text: string): Promise<string> {
  await writeFile(file, text);
  await truncate(file, 16 * 1024 * 1024);
  const { stdout } = await run("losetup", ["--find", "--show", file]);
  return stdout.trim();
}

async function canLoop(): Promise<readonly string[]> {
  return await run("losetup", ["--find"]).then(
    () => [],
    () => ["loop devices"],
  );
}

const lacking = [...(await findMissing()), ...(await canLoop())];

if (lacking.length > 0) {
  console.log(`# volumes of drivers cannot be mounted here (missing: ${lacking.join(", ")}): left out`);
} else {
  await using containerd = await startPrivateContainerd();
  await t.test("startAgent() gives containers what CSI, Flex and local volumes hold, and takes it back", async (t) => {
    const directory = join(containerd.directory, "agent");
    const api = new FakeApi();
    const base = createAgentConfig(containerd, directory);
    const storage = join(directory, "storage");
    for (const handle of ["vol-1", "flex"]) await mkdir(join(storage, handle), { recursive: true });
    await writeFile(join(storage, "vol-1", "hello"), "from csi\n");
    await writeFile(join(storage, "flex", "hello"), "from flex\n");
    const [raw, blank] = [
      await loopDevice(join(directory, "raw"), "from device\n"),
      await loopDevice(join(directory, "blank"), ""),
    ];
    t.teardown(async () => {
      for (const device of [raw, blank]) await run("losetup", ["-d", device]).catch(() => undefined);
    });
    const flexDir = join(directory, "flex", "example.com~dir");
    await mkdir(flexDir, { recursive: true });
    const script = `#!/bin/sh
case "$1" in
init) echo '{"status":"Success","capabilities":{"attach":false}}' ;;
mount) mount --bind ${join(storage, "flex")} "$2" && echo '{"status":"Success"}' ;;
unmount) umount "$2" && echo '{"status":"Success"}' ;;
*) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`;
    await writeFile(join(flexDir, "dir"), script, { mode: 0o755 });
    const registry = join(base.rootDir, "plugins_registry");
    await mkdir(registry, { recursive: true });
    await using driver = await startFakeDriver({
      name: NAME,
      socket: join(registry, "d.sock"),
      storage,
      mounter: systemMounter,
      capabilities: ["STAGE_UNSTAGE_VOLUME"],
      device: raw,
    });
    const spec = { attachRequired: false, volumeLifecycleModes: ["Persistent"] };
    api.put(`/apis/storage.svc.io/v1/csidrivers/${NAME}`, { kind: "CSIDriver", metadata: { name: NAME }, spec });
    const claim = (name: string, source: Readonly<Record<string, unknown>>): void => {
      const metadata = { name, namespace: "default", uid: `uid-${name}` };
      const path = `/api/v1/namespaces/default/persistentvolumeclaims/${name}`;
      api.put(path, {
        kind: "PersistentVolumeClaim",
        metadata,
        spec: { volumeName: name },
        status: { phase: "Bound" },
      });
      const claimRef = { uid: `uid-${name}`, name, namespace: "default" };
      const persistent = { claimRef, accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" }, ...source };
      api.put(`/api/v1/persistentvolumes/${name}`, { kind: "PersistentVolume", metadata: { name }, spec: persistent });
    };
    claim("files", { csi: { driver: NAME, volumeHandle: "vol-1", fsType: "ext4" } });
    claim("raw", { csi: { driver: NAME, volumeHandle: "vol-2" }, volumeMode: "Block" });
    claim("disk", { local: { path: blank } });
    const config = { ...base, volumes: { ...base.volumes, pluginDir: join(directory, "flex") } };
    const agent = await startAgent(config, { clock: systemClock, log: silentLogger, transport: api.transport });
    await agent.ready();
    const inContainer = [
      "cat /files/hello",
      "echo more > /files/more",
      "ls -ld /files | while read _ _ _ g _; do echo group $g; done",
      "head -n 1 /dev/raw0",
      "mount | while read _ _ p _ k _; do [ $p = /disk ] && echo $k; done",
      "echo kept > /disk/kept",
      "cat /flex/hello",
    ].join("; ");
    const path = "/api/v1/namespaces/default/pods/web";
    const pvc = (name: string) => ({ name, persistentVolumeClaim: { claimName: name } });
    const wanted: Pod["spec"] = {
      nodeName: "n1",
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 1,
      securityContext: { fsGroup: 2000 },
      volumes: [pvc("files"), pvc("raw"), pvc("disk"), { name: "flex", flexVolume: { driver: "example.com/dir" } }],
      containers: [
        {
          name: "c",
          image: containerd.image,
          imagePullPolicy: "Never",
          command: ["sh", "-c", inContainer],
          volumeMounts: ["files", "disk", "flex"].map((name) => ({ name, mountPath: `/${name}` })),
          volumeDevices: [{ name: "raw", devicePath: "/dev/raw0" }],
        },
      ],
    };
    const made = api.put(path, { kind: "Pod", metadata: { name: "web", namespace: "default" }, spec: wanted });
    const phase = (): unknown => api.objects.get(path)?.status?.phase;
    await until("the pod has run", () => phase() === "Succeeded" || phase() === "Failed");
    const log = await readFile(join(directory, `logs/default_web_${made.metadata.uid}/c/0.log`), "utf8");
    const lines = log
      .trimEnd()
      .split("\n")
      .map((line) => line.split(" ").slice(3).join(" "));
    t.same(lines, ["from csi", "group 2000", "from device", "ext4", "from flex"]);
    t.equal(await readFile(join(storage, "vol-1", "more"), "utf8"), "more\n");

    const deletion = { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 };
    api.put(path, { ...(api.objects.get(path) ?? made), metadata: { ...made.metadata, ...deletion } });
    await until("the object is gone", () => !api.objects.has(path));
    t.same(await systemMounter.listMountPoints(directory), [], "nothing stays mounted");
    t.ok(driver.volumeCalls.includes("unstageVolume"));
    t.same(await systemMounter.listMountPoints(blank), []);
    await agent.close();
  });
}
