import t from "tap";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { testPod } from "../../../testing/agent/pod-harness.ts";
import { podCgroupParent } from "../resources/cgroup-names.ts";
import { makeSandboxConfig } from "./sandbox-config.ts";

t.test("makeSandboxConfig() sets the cgroup parent of the pod's QoS class", async (t) => {
  const cgroups = { cgroupDriver: "cgroupfs" as const, cgroupRoot: "", cgroupsPerQos: true };
  const make = (spec: Partial<PodSpec>) =>
    makeSandboxConfig({
      pod: testPod("web", spec),
      attempt: 1,
      dns: {},
      clusterDomain: "",
      directories: { rootDir: "/r", podLogsDir: "/l" },
      cgroups,
    });
  const config = make({ hostNetwork: true, shareProcessNamespace: true });
  t.equal(config.linux?.cgroupParent, "/kubepods/besteffort/poduid-web");
  t.same(config.linux?.securityContext?.namespaceOptions, { network: "NODE", pid: "POD", ipc: "POD" });
  t.equal(config.hostname, undefined);
  t.equal(config.logDirectory, "/l/default_web_uid-web");
  const resources = { limits: { cpu: "1", memory: "1Gi" } };
  const guaranteed = testPod("web", { containers: [{ name: "c", resources }] });
  t.equal(podCgroupParent(guaranteed, cgroups), "/kubepods/poduid-web");
  const systemd = { ...cgroups, cgroupDriver: "systemd" as const };
  t.equal(podCgroupParent(testPod("web"), systemd), "kubepods-besteffort-poduid_web.slice");
});
