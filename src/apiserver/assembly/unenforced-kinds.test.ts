import t from "tap";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { defaultConfig } from "../config/default-config.ts";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const NETWORK_POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
const FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1";

const resourceRules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }];

const level = { type: "Limited", limited: { limitResponse: { type: "Reject" } } };

interface Case {
  readonly path: string;
  readonly body: object;
  readonly warning: RegExp | undefined;
  readonly admission?: Partial<ApiServerConfig["admission"]>;
  readonly agentFlags?: readonly string[];
  readonly fairness?: boolean;
}

const policy = { validations: [{ expression: "false" }], matchConstraints: { resourceRules } };

const template = {
  metadata: { labels: { a: "b" } },
  spec: { containers: [{ name: "c", image: "web:1" }] },
};

const cases: readonly Case[] = [
  {
    path: "/apis/apps/v1/namespaces/default/deployments",
    body: { metadata: { name: "x" }, spec: { selector: { matchLabels: { a: "b" } }, template } },
    warning: /Deployment is not enforced: the controller deployment is not among --embedded-controllers/,
  },
  {
    path: `${ADMISSION}/validatingadmissionpolicies`,
    body: { metadata: { name: "x" }, spec: policy },
    warning: undefined,
  },
  {
    path: `${ADMISSION}/validatingadmissionpolicybindings`,
    body: { metadata: { name: "x" }, spec: { policyName: "x", validationActions: ["Deny"] } },
    admission: { disabled: ["ValidatingAdmissionPolicy"] },
    warning:
      /ValidatingAdmissionPolicyBinding is not enforced: the admission plugin ValidatingAdmissionPolicy is disabled/,
  },
  {
    path: "/apis/scheduling.k8s.io/v1/priorityclasses",
    body: { metadata: { name: "x" }, value: 1 },
    admission: { disabled: ["Priority"] },
    warning: /PriorityClass is not enforced: the admission plugin Priority is disabled/,
  },
  {
    path: `${FLOW_CONTROL}/prioritylevelconfigurations`,
    body: { metadata: { name: "x" }, spec: level },
    warning: undefined,
  },
  {
    path: `${FLOW_CONTROL}/prioritylevelconfigurations`,
    body: { metadata: { name: "x" }, spec: level },
    fairness: false,
    warning: /PriorityLevelConfiguration is not enforced: --enable-priority-and-fairness is off/,
  },
  {
    path: `${FLOW_CONTROL}/flowschemas`,
    body: { metadata: { name: "x" }, spec: { priorityLevelConfiguration: { name: "exempt" }, matchingPrecedence: 9 } },
    fairness: false,
    warning: /FlowSchema is not enforced: --enable-priority-and-fairness is off/,
  },
  {
    path: `${ADMISSION}/validatingwebhookconfigurations`,
    body: { metadata: { name: "x" } },
    warning: undefined,
  },
  {
    path: `${ADMISSION}/validatingwebhookconfigurations`,
    body: { metadata: { name: "x" } },
    admission: { disabled: ["ValidatingAdmissionWebhook"] },
    warning:
      /ValidatingWebhookConfiguration is not enforced: the admission plugin ValidatingAdmissionWebhook is disabled/,
  },
  { path: "/api/v1/namespaces/default/resourcequotas", body: { metadata: { name: "x" } }, warning: undefined },
  ...[
    { agentFlags: ["--pod-network=auto"], warning: /NetworkPolicy is not enforced: --network-policy is off/ },
    { agentFlags: ["--pod-network=auto", "--network-policy"], warning: undefined },
    { agentFlags: [], warning: undefined },
  ].map((row) => ({ ...row, path: NETWORK_POLICIES, body: { metadata: { name: "x" }, spec: { podSelector: {} } } })),
  {
    path: "/api/v1/namespaces/default/resourcequotas",
    body: { metadata: { name: "x" } },
    admission: { disabled: ["ResourceQuota"] },
    warning: /ResourceQuota is not enforced: the admission plugin ResourceQuota is disabled/,
  },
];

async function warningsOf(server: TestServer, line: string, body: object): Promise<string> {
  const { status, headers, text } = await server.send(line, { body });
  t.ok(status < 300, text);
  return [headers.warning ?? []].flat().join("\n");
}

t.test("a write of an object without effect gets a warning", async (t) => {
  for (const { path, body, warning, admission, agentFlags, fairness = true } of cases) {
    const inFlight = { ...defaultConfig.limits.inFlight, shared: fairness };
    const limits = { ...defaultConfig.limits, inFlight };
    const config = { admission: { ...defaultConfig.admission, ...admission }, agentFlags, limits };
    await using server = await startTestServer(config);
    const { name } = (body as { metadata: { name: string } }).metadata;
    const created = await warningsOf(server, `POST ${path}`, body);
    const current = (await server.send(`GET ${path}/${name}`)).json;
    const updated = await warningsOf(server, `PUT ${path}/${name}`, {
      ...current,
      metadata: { ...current.metadata, labels: { a: "b" } },
    });
    for (const text of [created, updated]) {
      if (warning === undefined) t.equal(text, "", path);
      else t.match(text, warning, path);
    }
    t.equal((await server.send(`GET ${path}/${name}`)).headers.warning, undefined, "reads have no warning");
  }
});
