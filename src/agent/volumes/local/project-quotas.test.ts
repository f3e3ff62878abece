import t from "tap";
import { createProjectQuotas } from "./project-quotas.ts";

const ROOT = "22 1 8:1 / / rw - ext4 /dev/a rw";
const mountOf = (type: string, options: string) =>
  `${ROOT}\n30 22 8:2 / /data rw shared:1 - ${type} /dev/b ${options}\n`;

function start(mounts: string, outputs: Readonly<Record<string, string>>) {
  const commands: string[] = [];
  const failures: string[] = [];
  const quotas = createProjectQuotas({
    readMounts: async () => mounts,
    run: async (program, args) => {
      const command = [program, ...args].join(" ");
      commands.push(command);
      const output = outputs[command];
      if (output === undefined) throw new Error(`${program} is not installed`);
      return output;
    },
    inodeOf: async () => 77,
    onFailure: (_, error) => failures.push(String(error)),
  });
  return { quotas, commands, failures };
}

const ASSIGNED = "   77 --------------e-------P-- /data/v\n";

t.test("monitor() assigns a project without a limit, and readUsage() returns what it counts", async (t) => {
  const repquota = `*** Report for project quotas on device /dev/b\nProject  used soft hard grace
----------------------------------------------------------------------
#0        --      20       0       0              2     0     0
#77       --    1028       0       0              2     0     0
`;
  const ext4 = start(mountOf("ext4", "rw,prjquota"), {
    "chattr -p 77 +P /data/v": "",
    "lsattr -pd /data/v": ASSIGNED,
    "repquota -P -n /data": repquota,
  });
  t.equal(await ext4.quotas.monitor("/data/v"), true);
  t.same(await ext4.quotas.readUsage("/data/v"), { usedBytes: 1028 * 1024, inodesUsed: 2 });
  const xfs = start(mountOf("xfs", "rw,prjquota"), {
    "xfs_quota -x -c project -s -p /data/v 77 /data": "",
    "lsattr -pd /data/v": ASSIGNED,
    "xfs_quota -x -c quota -p -N -n -v -b 77 /data":
      "/dev/b                2048          0          0  00 [--------] /data\n",
    "xfs_quota -x -c quota -p -N -n -v -i 77 /data":
      "/dev/b                   7          0          0  00 [--------] /data\n",
  });
  t.equal(await xfs.quotas.monitor("/data/v"), true);
  t.same(await xfs.quotas.readUsage("/data/v"), { usedBytes: 2048 * 1024, inodesUsed: 7 });
  t.same([...ext4.failures, ...xfs.failures], []);
});

t.test("readUsage() returns nothing for directories that no quota counts", async (t) => {
  const without = start(mountOf("ext4", "rw"), {});
  t.equal(await without.quotas.monitor("/data/v"), false);
  t.equal(await without.quotas.readUsage("/data/v"), undefined);
  t.same(without.commands, []);
  const other = start(mountOf("ext4", "rw,prjquota"), { "lsattr -pd /data/v": ASSIGNED.replace("77", " 0") });
  t.equal(await other.quotas.readUsage("/data/v"), undefined, "no project");
  t.same(other.failures, []);
  const missing = start(mountOf("xfs", "rw,prjquota"), { "lsattr -pd /data/v": ASSIGNED });
  t.equal(await missing.quotas.monitor("/data/v"), false);
  t.equal(await missing.quotas.readUsage("/data/v"), undefined);
  t.same(missing.failures, ["Error: xfs_quota is not installed", "Error: xfs_quota is not installed"]);
});
