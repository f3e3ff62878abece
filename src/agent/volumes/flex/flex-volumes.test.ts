import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { Attachments } from "../drivers/attachments.ts";
import type { Mounter } from "../mount/mounter.ts";
import { FlexDrivers } from "./driver.ts";
import { FlexVolumes } from "./flex-volumes.ts";
import { toFlexVolume } from "./volume.ts";

const DRIVER = "example.com/disk";

/** A mounter that only records mounts. */
function pretended(): Mounter & { readonly points: Map<string, string> } {
  const points = new Map<string, string>();
  return {
    points,
    listMountPoints: async (path) => [...points.keys()].filter((each) => each === path || each.startsWith(`${path}/`)),
    tmpfs: async (target) => void points.set(target, "tmpfs"),
    hugePages: async (target, pageSize) => void points.set(target, pageSize),
    bind: async (source, target) => void points.set(target, source),
    unmount: async (target) => void points.delete(target),
  };
}

/** A driver that records its calls and runs a line of shell for each command. */
async function setUp(t: Test, scripts: Readonly<Record<string, string>>, byController = true) {
  const rootDir = await mkdtemp(join(tmpdir(), "svc-flex-"));
  t.teardown(() => rm(rootDir, { recursive: true, force: true }));
  const directory = join(rootDir, "drivers");
  await mkdir(join(directory, "example.com~disk"), { recursive: true });
  const program = join(directory, "example.com~disk", "disk");
  const cases = Object.entries(scripts).map(([command, line]) => `${command}) ${line} ;;`);
  const script = [
    "#!/bin/sh",
    `for arg in "$@"; do printf '%s\\t' "$arg"; done >> ${rootDir}/calls; echo >> ${rootDir}/calls`,
    'case "$1" in',
    ...cases,
    `*) echo '{"status":"Not supported"}'; exit 1 ;;`,
    "esac",
  ];
  await writeFile(program, `${script.join("\n")}\n`, { mode: 0o755 });
  const mounter = pretended();
  let node: Node = { metadata: { name: "n1" } };
  const attachments = new Attachments({
    client: undefined,
    clock: systemClock,
    nodeName: "n1",
    byController,
    node: async () => node,
    onInUseChange: () => undefined,
    retryPod: () => undefined,
  });
  const flex = new FlexVolumes({
    directories: { rootDir, podLogsDir: rootDir },
    drivers: new FlexDrivers({ directory, clock: systemClock }),
    attachments,
    secret: async () => ({ key: Buffer.from("s3cret") }),
    mounter,
    nodeName: "n1",
  });
  const pod: Pod = {
    metadata: { name: "web", namespace: "shop", uid: "uid-1" },
    spec: { containers: [], securityContext: { fsGroup: 2000 }, serviceAccountName: "worker" },
  };
  const volume = {
    name: "data",
    flexVolume: { driver: DRIVER, fsType: "ext4", options: { size: "1" }, secretRef: { name: "keys" } },
  };
  return {
    flex,
    mounter,
    rootDir,
    program,
    tellNode: (status: NonNullable<Node["status"]>) => {
      node = { ...node, status };
    },
    setUp: () => flex.setUp({ pod, name: "data", volume: toFlexVolume(pod, volume, undefined)! }),
    async calls() {
      const lines = (await readFile(join(rootDir, "calls"), "utf8")).replace(/\n$/, "").split("\n");
      return lines.map((line) => line.split("\t").slice(0, -1));
    },
  };
}

const success = `echo '{"status":"Success"}'`;
const simple = { init: `echo '{"status":"Success","capabilities":{"attach":false,"fsGroup":false}}'`, mount: success };

t.test("FlexVolumes passes the options of the volume, its secret and the pod to the driver", async (t) => {
  const at = await setUp(t, simple);
  const { path } = await at.setUp();
  t.equal(path, join(at.rootDir, "pods/uid-1/volumes/example.com~disk/data"));
  const [init, mount, ...others] = await at.calls();
  t.same(init, ["init"]);
  t.same(others, []);
  t.same(mount?.slice(0, 2), ["mount", path]);
  t.same(JSON.parse(mount?.[2] ?? ""), {
    size: "1",
    "kubernetes.io/fsType": "ext4",
    "kubernetes.io/readwrite": "rw",
    "kubernetes.io/pvOrVolumeName": "data",
    "kubernetes.io/mounterArgs.FsGroup": "2000",
    "kubernetes.io/pod.name": "web",
    "kubernetes.io/pod.namespace": "shop",
    "kubernetes.io/pod.uid": "uid-1",
    "kubernetes.io/serviceAccount.name": "worker",
    "kubernetes.io/secret/key": Buffer.from("s3cret").toString("base64"),
  });
});

t.test("FlexVolumes unmounts through the driver, or itself when the driver does not support it", async (t) => {
  const at = await setUp(t, simple);
  const { path } = await at.setUp();
  at.mounter.points.set(path, "disk");
  t.same(await at.flex.find("uid-1", "data"), { path, isBlock: false });
  await at.flex.tearDown("uid-1");
  t.same((await at.calls()).at(-1), ["unmount", path]);
  t.same([...at.mounter.points], []);
  t.equal(await at.flex.find("uid-1", "data"), undefined);
});

t.test("FlexVolumes rejects with the driver's message, and when there is no driver", async (t) => {
  const at = await setUp(t, { ...simple, mount: `echo '{"status":"Failure","message":"no disk"}'; exit 1` });
  await t.rejects(at.setUp(), {
    operation: "MountVolume.SetUp",
    volume: "data",
    message: "mount command failed, status: Failure, reason: no disk",
  });
  await rm(at.program);
  await t.rejects(at.setUp(), {
    name: "UnresolvedError",
    message: 'failed to get Plugin from volumeSpec for volume "data" err=no volume plugin matched',
  });
});

const attaching = {
  init: success,
  getvolumename: `echo '{"status":"Success","volumeName":"disk-7"}'`,
  attach: `echo '{"status":"Success","device":"/dev/x7"}'`,
  waitforattach: `echo '{"status":"Success","device":"/dev/x7"}'`,
  mountdevice: success,
  unmountdevice: success,
  detach: success,
};

t.test("FlexVolumes attaches through the driver, and mounts the device once for the node", async (t) => {
  const at = await setUp(t, attaching, false);
  const { path } = await at.setUp();
  const global = join(at.rootDir, "plugins/kubernetes.io/flexvolume/example.com/disk/mounts/disk-7");
  t.equal(at.mounter.points.get(path), global, "bound, because the driver does not mount for pods");
  const seen = (await at.calls()).map(([command, ...args]) => [command, ...args.filter((arg) => !/^\{/.test(arg))]);
  t.same(seen, [
    ["init"],
    ["getvolumename"],
    ["attach", "n1"],
    ["waitforattach", "/dev/x7"],
    ["mountdevice", global, "/dev/x7"],
    ["mount", path],
  ]);
  at.mounter.points.set(global, "/dev/x7");
  await at.flex.tearDown("uid-1");
  t.same((await at.calls()).slice(seen.length), [
    ["unmount", path],
    ["unmountdevice", global],
    ["detach", "disk-7", "n1"],
  ]);
});

t.test("FlexVolumes waits for the controller's attachment, and mounts its device", async (t) => {
  const at = await setUp(t, attaching);
  await t.rejects(at.setUp(), { event: undefined, message: /VolumesInUse/ });
  const name = `flexvolume-${DRIVER}/disk-7`;
  at.tellNode({ volumesInUse: [name], volumesAttached: [{ name, devicePath: "/dev/c1" }] });
  await at.setUp();
  const called = (await at.calls()).map(([command, arg]) => (command === "waitforattach" ? arg : command));
  t.ok(called.includes("/dev/c1"));
  t.notOk(called.includes("attach"));
});
