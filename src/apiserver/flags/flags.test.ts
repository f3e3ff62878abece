import t from "tap";
import type { Flag, ParsedFlags } from "../../flags/flag.ts";
import { isChanged, parseFlags } from "../../flags/parse.ts";
import { invoke } from "../../flags/program.ts";
import { defaultConfig } from "../config/default-config.ts";
import { selectServedApis } from "../discovery/api-enablement.ts";
import { apiserverFlags, apiserverProgram } from "./flags.ts";
import { admissionPlugins, defaultAdmissionPlugins, isOriginPattern } from "./values.ts";

const defaults = parseFlags(apiserverFlags, []);
const broken = (changed: Partial<ParsedFlags<typeof apiserverFlags>>) =>
  apiserverProgram.check?.({ ...defaults, ...changed });

t.test("apiserverProgram.check() reports conflicting flags", async (t) => {
  t.same(broken({}), []);
  t.match(broken({ "enable-admission-plugins": ["LimitRanger"], "disable-admission-plugins": ["LimitRanger"] }), [
    /both contain LimitRanger/,
  ]);
  t.match(broken({ "max-requests-inflight": 0, "max-mutating-requests-inflight": 0 }), [/sum must be positive/]);
  t.same(
    broken({
      "max-requests-inflight": 0,
      "max-mutating-requests-inflight": 0,
      "enable-priority-and-fairness": false,
    }),
    [],
  );
  t.match(broken({ "svc-service-node-port": 80 }), [/80 is outside of .*=30000-32767/]);
  t.match(broken({ "emulation-forward-compatible": true }), [/lower than 1.33/]);
  t.same(broken({ "emulation-forward-compatible": true, "emulated-version": ["svc=1.32"] }), []);
});

t.test("apiserverFlags rejects the combinations that the specification calls invalid", async (t) => {
  const cases: readonly [readonly string[], RegExp][] = [
    [["--authentication-config=a", "--oidc-client-id=b"], /--authentication-config and --oidc-client-id exclude/],
    [["--authorization-config=a", "--authorization-mode=RBAC"], /--authorization-config and --authorization-mode/],
    [
      ["--authorization-config=a", "--authorization-webhook-version=v1"],
      /--authorization-config and --authorization-webhook-version exclude/,
    ],
    [
      ["--service-account-signing-endpoint=/s", "--service-account-key-file=k"],
      /--service-account-signing-endpoint and --service-account-key-file exclude/,
    ],
    [["--service-account-signing-key-file=k"], /needs --service-account-key-file/],
    [["--oidc-issuer-url=https://i"], /needs --oidc-client-id/],
    [["--tls-cert-file=c"], /needs --tls-private-key-file/],
    [["--cluster-signing-cert-file=c"], /needs --cluster-signing-key-file/],
    [["--cluster-signing-cert-file=c", "--cluster-signing-key-file=k"], /add --embedded-controllers=csrsigning/],
    [
      ["--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA"],
      /--tls-cipher-suites: TLS_RSA_WITH_RC4_128_SHA is not supported/,
    ],
    [["--tls-cipher-suites=TLS_RSA_WITH_3DES_EDE_CBC_SHA"], /TLS_RSA_WITH_3DES_EDE_CBC_SHA is not supported/],
  ];
  for (const [argv, message] of cases) {
    t.match(
      invoke(apiserverProgram, argv, { version: "v1.33.0" }),
      { kind: "exit", code: 1, stderr: message },
      argv.join(" "),
    );
  }
});

t.test("flags of a feature need the flag that enables the feature", async (t) => {
  const features: readonly [RegExp, string][] = [
    [/^oidc-(?!issuer-url)/, "oidc-issuer-url"],
    [/^requestheader-(?!client-ca-file)/, "requestheader-client-ca-file"],
    [/^authentication-token-webhook-(?!config-file)/, "authentication-token-webhook-config-file"],
    [/^authorization-webhook-(?!config-file)/, "authorization-webhook-config-file"],
  ];
  for (const [pattern, feature] of features) {
    const rows = Object.entries<Flag>(apiserverFlags).filter(([name]) => pattern.test(name));
    t.ok(rows.length > 1, feature);
    for (const [name, { type }] of rows) {
      const others = (type.choices ?? []).map((choice) => type.parse(choice));
      const sample = [type.parse(type.sample), ...others].find((value) =>
        isChanged(apiserverFlags[name as never], value),
      );
      const stderr = new RegExp(`--${name} needs --${feature} as well`);
      const argv = [`--${name}=${type.print(sample)}`];
      t.match(invoke(apiserverProgram, argv, { version: "v1.33.0" }), { kind: "exit", code: 1, stderr }, name);
    }
  }
});

t.test("isOriginPattern() accepts only patterns that match whole hosts", async (t) => {
  const accepted = [
    "^https://example\\.com$",
    "//example\\.com$",
    "//example\\.com(:|$)",
    "^https?://[^|]+\\.example\\.com(?::\\d+|$)",
    "^https://(a|b)\\.example\\.com$",
    "^https://a$|^https://b$",
  ];
  for (const pattern of accepted) {
    t.ok(isOriginPattern(pattern), pattern);
  }
  const refused = [
    "example.com",
    "example\\.com$",
    "^https://example\\.com",
    "^https://example.com\\$",
    "^https://a|b$",
    "^https://a$|evil",
    "(",
    ".*",
  ];
  for (const pattern of refused) t.notOk(isOriginPattern(pattern), pattern);
  const { origins, attackers } = { origins: ["https://example.com"], attackers: ["https://example.com.evil.net"] };
  for (const pattern of accepted.slice(0, 3)) {
    for (const origin of origins) t.match(origin, new RegExp(pattern, "u"), pattern);
    for (const origin of attackers) t.notMatch(origin, new RegExp(pattern, "u"), pattern);
  }
});

t.test("a redundant flag is accepted with a warning", async (t) => {
  t.match(invoke(apiserverProgram, ["--permit-address-sharing"], { version: "v1.33.0" }), {
    kind: "run",
    warnings: [/--permit-address-sharing changes nothing: Node.js always binds/],
  });
});

t.test("defaultAdmissionPlugins are valid values of the admission flags", async (t) => {
  t.equal(defaultAdmissionPlugins.length, 22);
  for (const name of defaultAdmissionPlugins) t.ok(admissionPlugins.choices?.includes(name), name);
});

t.test("emulation names the gates and APIs that the release does not have", async (t) => {
  const run = (...argv: readonly string[]) =>
    invoke(apiserverProgram, ["--emulated-version=1.32", ...argv], { version: "v1.33.0" });
  const set = run("--feature-gates=KubeletPSI=true");
  const expected = /cannot set feature gate KubeletPSI to true, feature is PreAlpha at emulated version 1.32/;
  t.match(set, { kind: "exit", stderr: expected });
  const plain = run();
  t.match(
    plain.kind === "run" && plain.warnings.join(),
    /leaves out feature gates of later ones: .*ContainerStopSignals/,
  );
  const { warnings } = selectServedApis({ ...defaultConfig.apis, emulatedVersion: "1.32" });
  t.match(warnings, [/--emulated-version=1.32 leaves out APIs .*: networking.k8s.io\/v1\/ipaddresses/]);
});
