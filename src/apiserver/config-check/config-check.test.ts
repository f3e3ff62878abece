import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { runConfigCheck } from "./command.ts";

/** Of another program. */
const otherKind = {
  kind: "OtherConfiguration",
  apiVersions: ["other.svc.io/v1"],
  load: ({ file }: { readonly file: string }) => {
    throw new AggregateError([new Error(`${file}:1: kind: not today`), new Error("no line")]);
  },
};

const API_SERVER = "apiserver.config.k8s.io";

/** The lines for one file, without its directory. */
async function check(t: Test, text: string, name = "file.yaml"): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tmpdir(), "svc-check-"));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, name);
  await writeFile(file, text);
  const { stdout, code } = await runConfigCheck([file], async () => [otherKind]);
  t.equal(code, /: valid /.test(stdout) ? 0 : 1);
  return stdout.trimEnd().replaceAll(`${directory}/`, "").split("\n");
}

const header = (kind: string, version = "v1beta1", group = API_SERVER): string =>
  `apiVersion: ${group}/${version}\nkind: ${kind}\n`;

const kubeconfig = [
  "apiVersion: v1\nkind: Config\ncurrent-context: d",
  "clusters: [{name: c, cluster: {server: 'https://x'}}]",
  "contexts: [{name: d, context: {cluster: c, user: u}}]",
  "users: [{name: u, user: {}}]\n",
].join("\n");

t.test("a valid file of each kind", async (t) => {
  const jwt =
    "jwt: [{issuer: {url: 'https://a', audiences: [x]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n";
  const key = Buffer.alloc(32, 7).toString("base64");
  const files: Readonly<Record<string, readonly [text: string, name?: string]>> = {
    AdmissionConfiguration: [`${header("AdmissionConfiguration", "v1")}plugins: []\n`],
    AuthenticationConfiguration: [header("AuthenticationConfiguration") + jwt],
    AuthorizationConfiguration: [`${header("AuthorizationConfiguration")}authorizers: [{type: RBAC, name: r}]\n`],
    TracingConfiguration: [`${header("TracingConfiguration")}endpoint: localhost:4317\n`],
    EgressSelectorConfiguration: [
      `${header("EgressSelectorConfiguration")}egressSelections: [{name: cluster, connection: {proxyProtocol: Direct}}]\n`,
    ],
    EncryptionConfiguration: [
      `${header("EncryptionConfiguration", "v1")}resources: [{resources: [secrets], providers: [{secretbox: {keys: [{name: k, secret: ${key}}]}}]}]\n`,
    ],
    Policy: [`${header("Policy", "v1", "audit.k8s.io")}rules: [{level: Metadata}]\n`],
    KubeSchedulerConfiguration: [header("KubeSchedulerConfiguration", "v1", "kubescheduler.config.k8s.io")],
    PodSecurityConfiguration: [
      `${header("PodSecurityConfiguration", "v1", "pod-security.admission.config.k8s.io")}defaults: {enforce: baseline}\n`,
    ],
    Config: [kubeconfig],
    "token file": ["token,user,uid\n", "tokens.csv"],
    "ABAC policy file": [
      '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob"}}\n',
      "abac.jsonl",
    ],
  };
  for (const [kind, [text, name = "file.yaml"]] of Object.entries(files)) {
    t.same(await check(t, text, name), [`${name}: valid ${kind}`]);
  }
});

t.test("mistakes have line, column, field, and what would be right", async (t) => {
  const rows: readonly (readonly [text: string, expected: readonly string[], name?: string])[] = [
    [
      `${header("AuthenticationConfiguration")}jwt:\n- issuer:\n    url: http://a\n  claimMapings: {}\n`,
      [
        "file.yaml:4:3: jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        "file.yaml:4:3: jwt[0].claimMappings.username: Required value: claim or expression is required",
        'file.yaml:5:5: jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https',
        "file.yaml:6:3: jwt[0].claimMapings: unknown field; did you mean claimMappings?",
      ],
    ],
    [
      `${header("TracingConfiguration")}samplingRatePerMillion: "5"\nsamplingRatePerMillion: 6\n`,
      ["file.yaml:4:1: samplingRatePerMillion: the field is set twice; remove one of the two"],
    ],
    [
      `${header("AuthorizationConfiguration")}authorizers:\n- type: RBACC\n  name: x\n`,
      [
        'file.yaml:4:3: authorizers[0].type: Unsupported value: "RBACC"; supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"',
      ],
    ],
    [
      `${header("EncryptionConfiguration", "v1")}resources:\n- resources: [secrets]\n  providers:\n  - aescbc: {keys: [{name: k, secret: abc}]}\n`,
      [
        'file.yaml:6:31: resources[0].providers[0].aescbc.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded',
      ],
    ],
    [
      `${header("AdmissionConfiguration", "v1")}plugins:\n- name: PodSecurty\n`,
      ['file.yaml:4:3: plugins[0].name: plugin "PodSecurty" is unknown; did you mean PodSecurity?'],
    ],
    // The server only warns about unknown fields of an audit policy, and refuses the values.
    [
      `${header("Policy", "v1", "audit.k8s.io")}rules:\n- level: Metadataa\n  userz: [a]\n- verb: [get]\n`,
      [
        'file.yaml:4:3: rules[0].level: Unsupported value: "Metadataa"; supported values: "None", "Metadata", "Request", "RequestResponse"',
        "file.yaml:5:3: rules[0].userz: unknown field; did you mean users?",
        "file.yaml:6:3: rules[1].verb: unknown field; did you mean verbs?",
        "file.yaml:6:3: rules[1].level: Required value; set it",
      ],
    ],
    // The servers end at the unknown fields; the check also reports the values.
    [
      `${header("AuthorizationConfiguration")}authorizers:\n- type: RBACC\n  nam: x\n  colour: red\n- type: 5\n  name: yy\n`,
      [
        'file.yaml:4:3: authorizers[0].type: Unsupported value: "RBACC"; supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"',
        "file.yaml:5:3: authorizers[0].nam: unknown field; did you mean name?",
        "file.yaml:6:3: authorizers[0].colour: unknown field; the fields here are type, name, webhook",
        "file.yaml:7:3: authorizers[1].type: json: cannot unmarshal number into Go struct field AuthorizerConfiguration.authorizers.type of type string; expected a string",
      ],
    ],
    [
      `${header("EncryptionConfiguration", "v1")}resorces: []\nresources:\n- resources: [secrets]\n  providers:\n  - aescbc: {keys: [{name: k, secret: abc}], size: 1}\n`,
      [
        "file.yaml:3:1: resorces: unknown field; did you mean resources?",
        'file.yaml:7:31: resources[0].providers[0].aescbc.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded',
        "file.yaml:7:46: resources[0].providers[0].aescbc.size: unknown field; the fields here are keys",
      ],
    ],
    [
      `${header("TracingConfiguration")}samplingRatePerMillion: 5000000\nendpont: a:1\n`,
      [
        "file.yaml:3:1: samplingRatePerMillion: Invalid value: 5000000: sampling rate per million must be less than or equal to one million",
        "file.yaml:4:1: endpont: unknown field; did you mean endpoint?",
      ],
    ],
    [
      `${header("EgressSelectorConfiguration")}egressSelections:\n- name: clusterr\n  conection: {proxyProtocol: HTTPConect}\n`,
      [
        'file.yaml:4:3: egressSelections[0].connection.proxyProtocol: Unsupported value: "HTTPConect"; supported values: "Direct", "HTTPConnect", "GRPC"',
        'file.yaml:4:3: egressSelections[0].name: Unsupported value: "clusterr"; supported values: "cluster", "controlplane", "etcd"',
        "file.yaml:5:3: egressSelections[0].conection: unknown field; did you mean connection?",
      ],
    ],
    [
      `${header("AdmissionConfiguration", "v1")}plugins:\n- name: PodSecurty\n  pth: x\n`,
      [
        'file.yaml:4:3: plugins[0].name: plugin "PodSecurty" is unknown; did you mean PodSecurity?',
        "file.yaml:5:3: plugins[0].pth: unknown field; did you mean path?",
      ],
    ],
    [
      `${header("KubeSchedulerConfiguration", "v1", "kubescheduler.config.k8s.io")}paralelism: 1\nprofiles: [{schedulerName: a}, {schedulerName: a}]\n`,
      [
        "file.yaml:3:1: paralelism: unknown field; did you mean parallelism?",
        'file.yaml:4:33: profiles[1].schedulerName: Duplicate value: "a"; each may occur once',
      ],
    ],
    [header("OtherConfiguration", "v1", "other.svc.io"), ["file.yaml:1:1: kind: not today", "file.yaml:1:1: no line"]],
    [
      kubeconfig.replace("https://x", "ftp://x"),
      ['file.yaml:4:32: clusters[0].cluster.server: found "ftp://x"; expected https://host:port'],
    ],
    ["a: [1,\nb: 2\n", ["file.yaml:1:1: yaml: line 1: did not find expected ',' or ']'"]],
    [
      "apiVersion: v1\nkind: Policyy\n",
      ['file.yaml:2:1: kind: "Policyy" is no kind of a configuration file; did you mean Policy?'],
    ],
    [
      "kind: TracingConfiguration\n",
      [
        "file.yaml:1:1: apiVersion: the field is missing; expected apiserver.svc.io/v1beta1 or " +
          "apiserver.config.k8s.io/v1beta1 or apiserver.k8s.io/v1beta1 or apiserver.svc.io/v1 or another version",
      ],
    ],
    [
      "a,b,c\nd,e\n,f,g\n",
      [
        'tokens.csv:2:1: found fewer columns; expected token,user,uid,"group1,group2"',
        'tokens.csv:3:1: the token is empty; expected token,user,uid,"group1,group2"',
      ],
      "tokens.csv",
    ],
  ];
  for (const [text, expected, name] of rows) t.same(await check(t, text, name), expected);
});

t.test("an ABAC file shows the mistakes of each line", async (t) => {
  const line = '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"resorce":"a"}}';
  const lines = await check(t, `${line}\n{"a\n`, "abac.jsonl");
  t.match(lines, [
    /^abac\.jsonl:1:1: spec\.resorce: unknown field; the fields are user,/,
    /^abac\.jsonl:2:1: Unterminated/,
  ]);
});

t.test("missing, empty and unreadable files, and hostile ones, are mistakes", async (t) => {
  t.match((await runConfigCheck(["/nonexistent"])).stdout, "/nonexistent: there is no such file\n");
  t.same(await check(t, " \n"), ["file.yaml: the file is empty"]);
  t.match(await check(t, "plain text"), [/the file is no configuration; expected a mapping/]);
  t.match(await check(t, `${header("TracingConfiguration")}a: ${"[".repeat(5000)}`), [/^file\.yaml:/]);
  t.match(await check(t, `${header("TracingConfiguration")}---\n${header("TracingConfiguration")}`), [
    /has 2 documents/,
  ]);
});

t.test("the command line", async (t) => {
  t.match(await runConfigCheck(["--help"]), { code: 0, stdout: /^Usage: svc apiserver config check FILE/ });
  t.match(await runConfigCheck([]), { code: 1, stderr: /no file was named/ });
  t.match(await runConfigCheck(["--fix", "a"]), { code: 1, stderr: /unknown flag --fix/ });
});
