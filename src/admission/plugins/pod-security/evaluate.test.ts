import { existsSync, readdirSync, readFileSync } from "node:fs";
import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { decode } from "../../../schema/decode/decode.ts";
import { applyDefaults } from "../../../schema/defaults.ts";
import { parseYaml } from "../../../schema/yaml/yaml.ts";
import { detailsText, findViolations } from "./evaluate.ts";
import type { LevelVersion } from "./level.ts";
import { parseVersion } from "./version.ts";

const shared = process.env.SVC_SHARED ?? new URL("../../../../../shared", import.meta.url).pathname;
const fixtures = `${shared}/oracles/pod-security`;

/** The pod with defaults, as plugins receive it. */
function withDefaults(pod: Pod): Pod {
  const complete = applyDefaults(podKind.schema, pod);
  return podKind.strategy.setDefaults?.(complete) ?? complete;
}

function messageOf(pod: Pod, level: LevelVersion): string {
  const { metadata = {}, spec = { containers: [] } } = pod;
  return detailsText(findViolations({ metadata, spec, relaxUserNamespaces: false }, level));
}

t.test("findViolations() gives Kubernetes' result for each level and release of the fixtures", async (t) => {
  if (!existsSync(fixtures)) return t.comment("The pods of the Pod Security fixtures are not here");
  let agreed = 0;
  const differing: string[] = [];
  for (const level of ["baseline", "restricted"] as const) {
    for (const release of readdirSync(`${fixtures}/${level}`)) {
      for (const outcome of ["pass", "fail"]) {
        for (const file of readdirSync(`${fixtures}/${level}/${release}/${outcome}`)) {
          const path = `${level}/${release}/${outcome}/${file}`;
          const text = readFileSync(`${fixtures}/${path}`, "utf8");
          const pod = withDefaults(decode(podKind.schema, parseYaml(text)[0]?.value).value as Pod);
          const admitted = messageOf(pod, { level, version: parseVersion(release)! }) === "";
          if (admitted === (outcome === "pass")) agreed++;
          else differing.push(path);
        }
      }
    }
  }
  t.comment(`${agreed}/${agreed + differing.length} pods with the same result as Kubernetes`);
  t.strictSame(differing, []);
});

const latest = (level: LevelVersion["level"]): LevelVersion => ({ level, version: "latest" });
const pod = (spec: object, annotations?: Record<string, string>): Pod =>
  ({ metadata: { name: "p", ...(annotations && { annotations }) }, spec }) as Pod;
const container = (name: string, securityContext?: object, more?: object) => ({
  name,
  ...more,
  ...(securityContext && { securityContext }),
});
const good = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  runAsNonRoot: true,
  seccompProfile: { type: "RuntimeDefault" },
};

t.test("findViolations() returns Kubernetes' messages", async (t) => {
  const cases: readonly (readonly [string, LevelVersion["level"], Pod, string])[] = [
    [
      "a pod without securityContext",
      "restricted",
      pod({ containers: [container("a")] }),
      'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ],
    [
      "baseline violations come first",
      "restricted",
      pod({ hostPID: true, containers: [container("a", { ...good, runAsUser: 0 })] }),
      'host namespaces (hostPID=true), runAsUser=0 (container "a" must not set runAsUser=0)',
    ],
    [
      "two containers",
      "baseline",
      pod({
        initContainers: [container("i", { privileged: true })],
        containers: [container("a", { privileged: true }), container("b")],
      }),
      'privileged (containers "i", "a" must not set securityContext.privileged=true)',
    ],
    [
      "ports of the host",
      "baseline",
      pod({ containers: [container("a", undefined, { ports: [{ hostPort: 80 }, { hostPort: 443 }, {}] })] }),
      'hostPort (container "a" uses hostPorts 443, 80)',
    ],
    [
      "capabilities",
      "baseline",
      pod({ containers: [container("a", { capabilities: { add: ["NET_RAW", "KILL", "BPF"] } })] }),
      'non-default capabilities (container "a" must not include "BPF", "NET_RAW" in securityContext.capabilities.add)',
    ],
    [
      "volumes, restricted instead of baseline",
      "restricted",
      pod({
        containers: [container("a", good)],
        volumes: [
          { name: "v", hostPath: { path: "/" } },
          { name: "w", nfs: { server: "s", path: "/" } },
          { name: "x", emptyDir: {} },
        ],
      }),
      'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")',
    ],
    [
      "SELinux",
      "baseline",
      pod({
        securityContext: { seLinuxOptions: { user: "u" } },
        containers: [container("a", { seLinuxOptions: { type: "t", role: "r" } })],
      }),
      'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "t"; user may not be set; role may not be set)',
    ],
    [
      "AppArmor, by member and annotation",
      "baseline",
      pod(
        { securityContext: { appArmorProfile: { type: "Unconfined" } }, containers: [container("a")] },
        { "container.apparmor.security.beta.kubernetes.io/a": "unconfined" },
      ),
      'forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to "Unconfined", "container.apparmor.security.beta.kubernetes.io/a="unconfined"")',
    ],
    [
      "sysctls",
      "baseline",
      pod({ securityContext: { sysctls: [{ name: "kernel.shmmax", value: "1" }] }, containers: [] }),
      "forbidden sysctls (kernel.shmmax)",
    ],
    [
      "host processes",
      "baseline",
      pod({ securityContext: { windowsOptions: { hostProcess: true } }, containers: [] }),
      "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
    ],
    [
      "procMount",
      "baseline",
      pod({ containers: [container("a", { procMount: "Unmasked" })] }),
      'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ],
  ];
  for (const [title, level, subject, text] of cases) t.equal(messageOf(subject, latest(level)), text, title);
});

t.test("findViolations() applies the rules of the release; later releases are as the latest", async (t) => {
  const subject = pod({ containers: [container("a", { ...good, allowPrivilegeEscalation: true })] });
  t.equal(messageOf(subject, { level: "restricted", version: 7 }), "", "before the rule");
  t.match(messageOf(subject, { level: "restricted", version: 8 }), /^allowPrivilegeEscalation/u);
  t.match(messageOf(subject, { level: "restricted", version: 999 }), /^allowPrivilegeEscalation/u);
});

t.test("findViolations() relaxes checks for pods with a user namespace if the gate is enabled", async (t) => {
  const { metadata = {}, spec } = pod({ hostUsers: false, containers: [container("a", { ...good, runAsUser: 0 })] });
  const resultOf = (relaxUserNamespaces: boolean) =>
    findViolations({ metadata, spec: spec!, relaxUserNamespaces }, latest("restricted")).length;
  t.equal(resultOf(true), 0);
  t.equal(resultOf(false), 1);
});
