import t from "tap";
import type { SELinuxOptions } from "../../../api/core/container/security-context.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { contextOption, findMountContext, type LabelledVolume, type SeLinuxMounts, systemSeLinux } from "./selinux.ts";

const files: Readonly<Record<string, string>> = {
  "/etc/selinux/config": "# comment\nSELINUX=enforcing\nSELINUXTYPE=mls\n",
  "/etc/selinux/mls/contexts/lxc_contexts":
    'process = "system_u:system_r:svirt_lxc_net_t:s0"\nfile = "system_u:object_r:svirt_sandbox_file_t:s0"\n',
};
const seLinux = { isEnabled: () => true, readFile: (path: string) => files[path] };
const volume: LabelledVolume = { name: "data", accessModes: ["ReadWriteOncePod"], isSupported: true };

function pod(shared: SELinuxOptions | undefined, ...own: readonly (SELinuxOptions | undefined)[]): Pod {
  const containers = own.map((seLinuxOptions, i) => ({
    name: `c${i}`,
    volumeMounts: [{ name: "data", mountPath: "/d" }],
    securityContext: { seLinuxOptions },
  }));
  return { spec: { securityContext: { seLinuxOptions: shared }, containers } };
}

const find = (each: Pod, changes: Partial<LabelledVolume> = {}, mounts: SeLinuxMounts = "ReadWriteOncePod") =>
  findMountContext(each, { ...volume, ...changes }, mounts, seLinux);

t.test("findMountContext() joins the host's label of files and the level and user of the pod", async (t) => {
  const prefix = "system_u:object_r:svirt_sandbox_file_t";
  t.equal(find(pod({ level: "s0:c1,c2" }, undefined)), `${prefix}:s0:c1,c2`);
  t.equal(find(pod({ level: "s0:c1" }, { level: "s0:c9" })), `${prefix}:s0:c9`, "of the container");
  const process = { user: "u", role: "r", type: "spc_t", level: "s0" };
  t.equal(find(pod(process, undefined)), "u:object_r:svirt_sandbox_file_t:s0");
  t.equal(contextOption("u:object_r:t:s0:c1,c2"), 'context="u:object_r:t:s0:c1,c2"');
});

t.test("findMountContext() returns nothing for volumes that the runtime relabels", async (t) => {
  const each = pod({ level: "s0:c1" }, undefined);
  const { securityContext } = each.spec ?? {};
  const recursive = {
    spec: { ...each.spec, securityContext: { ...securityContext, seLinuxChangePolicy: "Recursive" } },
  };
  t.equal(find(recursive as Pod), undefined);
  t.equal(find(pod(undefined, undefined)), undefined, "no options");
  t.equal(find(pod({ type: "spc_t" }, undefined)), undefined, "the runtime chooses the level");
  t.equal(find(each, { isSupported: false }), undefined);
  t.equal(find(each, { name: "other" }), undefined, "no container mounts it");
  t.equal(find(each, {}, "none"), undefined);
  t.equal(find(each, { accessModes: ["ReadWriteOncePod", "ReadOnlyMany"] }), undefined);
  t.equal(find(each, { accessModes: undefined }), undefined);
  t.ok(find(each, { accessModes: undefined }, "all"), "inline in the pod");
  const without = { isEnabled: () => false, readFile: () => undefined };
  t.equal(findMountContext(each, volume, "all", without), undefined);
  t.equal(findMountContext(each, volume, "all", { ...without, isEnabled: () => true }), undefined, "no label of files");
});

t.test("findMountContext() rejects a volume of containers with different labels", async (t) => {
  t.throws(() => find(pod(undefined, { level: "s0:c1" }, { level: "s0:c2" })), {
    message: /^multiple SELinux labels found: \S+:s0:c1, \S+:s0:c2$/,
  });
  t.ok(find(pod(undefined, { level: "s0:c1" }, undefined)), "a container without options");
});

t.test("systemSeLinux reads the host", async (t) => {
  t.type(systemSeLinux.isEnabled(), "boolean");
  t.equal(systemSeLinux.readFile("/nowhere"), undefined);
});
