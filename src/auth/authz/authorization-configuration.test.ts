import { join } from "node:path";
import t from "tap";
import { fileDirectory } from "../../testing/std/file-directory.ts";
import { parseAuthorizationConfiguration } from "./authorization-configuration.ts";

const directory = fileDirectory(t, { hook: "x" });
const HEAD = "apiVersion: apiserver.svc.io/v1beta1\nkind: AuthorizationConfiguration\n";
const HOOK = `authorizers:
- type: Webhook
  name: first
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    unauthorizedTTL: 10s
    connectionInfo: {type: SvcConfigFile, svcConfigFile: ${join(directory, "hook")}}
    matchConditions:
    - expression: "'a' in request.groups"
- {type: Node, name: node}
- {type: RBAC, name: rbac}
`;

t.test("parseAuthorizationConfiguration() reads the authorizers in order", async (t) => {
  const chain = parseAuthorizationConfiguration("f", HEAD + HOOK);
  t.same(chain, [
    {
      type: "Webhook",
      name: "first",
      webhook: {
        authorizedTtlMs: 300_000,
        unauthorizedTtlMs: 10_000,
        timeoutMs: 3000,
        version: "v1",
        failurePolicy: "Deny",
        file: join(directory, "hook"),
        matchConditions: ["'a' in request.groups"],
      },
    },
    { type: "Node", name: "node" },
    { type: "RBAC", name: "rbac" },
  ]);
  const upstream = `${HEAD}${HOOK}`.replace("svc.io/v1beta1", "config.k8s.io/v1").replaceAll("vcConfigFile", "kubeX");
  t.same(
    parseAuthorizationConfiguration(
      "f",
      upstream.replace("type: SkubeX", "type: KubeConfigFile").replace("skubeX", "kubeConfigFile"),
    ),
    chain,
    "the Kubernetes alias of the group",
  );
});

t.test("parseAuthorizationConfiguration() rejects an invalid file with line and field", async (t) => {
  const bad: readonly (readonly [text: string, message: RegExp])[] = [
    ["", /Cannot load f: the file is empty/],
    [`${HEAD}---\n${HEAD}`, /Cannot load f: the file has more than one document/],
    ["[]", /Cannot load f: it is not a mapping/],
    ["a: b: c", /Cannot load f: /],
    ["apiVersion: v1\nkind: AuthorizationConfiguration\n", /Cannot load f:2: expected apiVersion: apiserver.svc.io/],
    [`${HEAD}authorizers: []`, /f:3: authorizers: Required value: at least one/],
    [`${HEAD}authorizers:\n- {type: Node, name: a}\n- {type: Node, name: b}`, /f:5: authorizers\[1\]\.type: Duplicate/],
    [`${HEAD}authorizers:\n- {type: Node, name: a}\n- {type: RBAC, name: a}`, /authorizers\[1\]\.name: Duplicate/],
    [`${HEAD}authorizers:\n- {type: Magic, name: a}`, /type: Unsupported value: "Magic": supported values: "ABAC"/],
    [`${HEAD}authorizers:\n- {type: Node, name: A_B}`, /authorizer name is invalid/],
    [`${HEAD}authorizers:\n- {type: Webhook, name: a}`, /webhook: Required value: required when type=Webhook/],
    [`${HEAD}authorizers:\n- {type: Node, name: a, webhook: {}}`, /may only be specified when type=Webhook/],
    [`${HEAD}authorizers:\n- {type: Node, name: a, colour: red}`, /f:4: unknown field authorizers\[0\]\.colour/],
    [
      HEAD + HOOK.replace("timeout: 3s", "timeout: 31s"),
      /f:7: .*timeout: Invalid value: "31s": must be > 0s and <= 30s/,
    ],
    [HEAD + HOOK.replace("    timeout: 3s\n", ""), /timeout: Required value/],
    [HEAD + HOOK.replace("unauthorizedTTL: 10s", "unauthorizedTTL: -1s"), /unauthorizedTTL: Invalid value: "-1s"/],
    [HEAD + HOOK.replace("AccessReviewVersion: v1\n", "AccessReviewVersion: v2\n"), /Version: Unsupported value: "v2"/],
    [HEAD + HOOK.replace("failurePolicy: Deny", "failurePolicy: Allow"), /failurePolicy: Unsupported value: "Allow"/],
    [HEAD + HOOK.replace("type: SvcConfigFile", "type: InClusterConfig"), /cannot be its own webhook/],
    [HEAD + HOOK.replace(join(directory, "hook"), "hook"), /must be an absolute path/],
    [HEAD + HOOK.replace(join(directory, "hook"), directory), /must be a regular file/],
    [HEAD + HOOK.replace(join(directory, "hook"), "/no/such"), /there is no such file/],
    [
      HEAD + HOOK.replace("'a' in request.groups", "request.nothing"),
      /f:\d+: .*compilation failed: .*undefined field/s,
    ],
    [HEAD + HOOK.replace("'a' in request.groups", "request.user"), /must evaluate to bool/],
  ];
  for (const [text, message] of bad) t.throws(() => parseAuthorizationConfiguration("f", text), { message }, text);
  const many = Array.from({ length: 65 }, (_, index) => `    - expression: "${index} > 0"\n`).join("");
  t.throws(
    () => parseAuthorizationConfiguration("f", HEAD + HOOK.replace(/ {4}- expression.*\n/, many)),
    /Too many: 65/,
  );
});
