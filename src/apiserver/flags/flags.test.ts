import t from "tap";
import type { ParsedFlags } from "../../flags/flag.ts";
import { parseFlags } from "../../flags/parse.ts";
import { invoke } from "../../flags/program.ts";
import { apiserverFlags, apiserverProgram } from "./flags.ts";
import { admissionPlugins, defaultAdmissionPlugins } from "./values.ts";

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
  ];
  for (const [argv, message] of cases) {
    t.match(
      invoke(apiserverProgram, argv, { version: "v1.33.0" }),
      { kind: "exit", code: 1, stderr: message },
      argv.join(" "),
    );
  }
});

t.test("defaultAdmissionPlugins are valid values of the admission flags", async (t) => {
  t.equal(defaultAdmissionPlugins.length, 22);
  for (const name of defaultAdmissionPlugins) t.ok(admissionPlugins.choices?.includes(name), name);
});
