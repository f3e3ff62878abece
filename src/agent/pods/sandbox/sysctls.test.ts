import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { findForbiddenSysctl, normalizeSysctlName, podSysctls, validateAllowedSysctls } from "./sysctls.ts";

function podWith(names: readonly string[], spec: Partial<PodSpec> = {}): Pod {
  const sysctls = names.map((name) => ({ name, value: "1" }));
  return { spec: { containers: [], securityContext: { sysctls }, ...spec } };
}

t.test("normalizeSysctlName() converts slashes to dots, and dots within a component to slashes", async (t) => {
  const cases = [
    ["net.ipv4.tcp_syncookies", "net.ipv4.tcp_syncookies"],
    ["net/ipv4/tcp_syncookies", "net.ipv4.tcp_syncookies"],
    ["net/ipv4/conf/eth0.7/rp_filter", "net.ipv4.conf.eth0/7.rp_filter"],
    ["net.ipv4.conf.eth0/7.rp_filter", "net.ipv4.conf.eth0/7.rp_filter"],
    ["", ""],
  ] as const;
  for (const [written, wanted] of cases) t.equal(normalizeSysctlName(written), wanted, written);
  t.same(podSysctls(podWith(["net/ipv4/tcp_rmem"])), { "net.ipv4.tcp_rmem": "1" });
});

t.test("findForbiddenSysctl() allows safe and allowlisted sysctls, and none of a shared host namespace", async (t) => {
  const allowed = ["net.core.somaxconn", "kernel/msg*"];
  const cases: readonly (readonly [Pod, string | undefined])[] = [
    [podWith([]), undefined],
    [podWith(["net/ipv4/tcp_syncookies", "net.core.somaxconn", "kernel.msgmax"]), undefined],
    [podWith(["net.core.wmem_max"]), 'forbidden sysctl: "net.core.wmem_max" not allowlisted'],
    [podWith(["net.core.somaxconnx"]), 'forbidden sysctl: "net.core.somaxconnx" not allowlisted'],
    [
      podWith(["net.core.somaxconn"], { hostNetwork: true }),
      'forbidden sysctl: "net.core.somaxconn" not allowed with host net enabled',
    ],
    [
      podWith(["kernel.msgmax"], { hostIPC: true }),
      'forbidden sysctl: "kernel.msgmax" not allowed with host ipc enabled',
    ],
    [podWith(["kernel.msgmax"], { hostNetwork: true }), undefined],
  ];
  for (const [pod, wanted] of cases) t.equal(findForbiddenSysctl(pod, allowed), wanted);
});

t.test("validateAllowedSysctls() throws for a sysctl that is not namespaced", async (t) => {
  validateAllowedSysctls(["net.*", "kernel.shm*", "kernel.sem", "fs/mqueue/*", "net/core/somaxconn"]);
  for (const pattern of ["vm.swappiness", "kernel.*", "*", "fs.file-max", ""]) {
    t.throws(() => validateAllowedSysctls([pattern]), /not known to be namespaced/, pattern);
  }
});
