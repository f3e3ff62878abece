/** Every flag of `svc apiserver`, in the order of its help. */
import { flag, type ParsedFlags, section } from "../../flags/flag.ts";
import { apiserverGates } from "../../flags/gate-tables/apiserver.ts";
import { apiserverGatesIn } from "../../flags/gate-tables/apiserver-history.ts";
import { normaliseGateName } from "../../flags/gates.ts";
import type { Program } from "../../flags/program.ts";
import { duration } from "../../flags/types/duration.ts";
import { strings } from "../../flags/types/list.ts";
import { int } from "../../flags/types/number.ts";
import { bool, file, oneOfOrNone } from "../../flags/types/text.ts";
import { findUnsupportedSuite } from "../../http/tls/cipher-suites.ts";
import { auditFlags } from "./audit.ts";
import { authenticationFlags } from "./authentication.ts";
import { authorizationFlags } from "./authorization.ts";
import { lifecycleFlags } from "./lifecycle.ts";
import { servingFlags } from "./serving.ts";
import { storageFlags } from "./storage.ts";
import { emulatedVersion } from "./values.ts";

const ownFlags = section("Single-process clusters", {
  "embedded-controllers": flag(
    strings({ sample: "scheduler" }),
    [],
    "Controllers to run in this process, for clusters without a controller manager; * enables all, -NAME excludes one.",
  ),
  "cluster-signing-cert-file": flag(
    file,
    "",
    "CA that signs approved certificate signing requests, for the embedded controller csrsigning.",
    { requires: ["cluster-signing-key-file"] },
  ),
  "cluster-signing-key-file": flag(file, "", "Private key of that CA.", {
    requires: ["cluster-signing-cert-file"],
  }),
  "cluster-signing-duration": flag(
    duration({ min: 0 }),
    31_536_000_000,
    "Maximum validity of signed certificates; requests may specify less.",
    { requires: ["cluster-signing-cert-file"] },
  ),
  "api-group-aliases": flag(
    oneOfOrNone("k8s.io"),
    "k8s.io",
    "Alias under which the svc.io API groups are also served, for Kubernetes clients; empty for none.",
  ),
  "kvstore-quota-bytes": flag(
    int(),
    0,
    "Size in bytes at which a store on disk accepts only deletions and small updates; 0 means 2147483648, a " +
      "negative value no quota.",
  ),
  "list-api-group-aliases": flag(
    bool,
    false,
    "List both names of each API group in discovery, OpenAPI and APIServices; otherwise only Kubernetes' name.",
  ),
});

export const apiserverFlags = {
  ...servingFlags,
  ...authenticationFlags,
  ...authorizationFlags,
  ...storageFlags,
  ...lifecycleFlags,
  ...auditFlags,
  ...ownFlags,
};

type ApiserverFlags = typeof apiserverFlags;

export const apiserverProgram: Program<ApiserverFlags> = {
  name: "svc apiserver",
  summary:
    "The API server validates and configures the objects of a cluster and stores them. All other components of the " +
    "cluster interact through its API.",
  flags: apiserverFlags,
  gates: apiserverGates,
  gatesFor: (flags) => apiserverGatesIn(emulatedVersion(flags["emulated-version"])),
  check: validateFlags,
};

/** Gates that the emulated release does not have. */
function validateEmulatedGates(flags: ParsedFlags<ApiserverFlags>): readonly string[] {
  const version = emulatedVersion(flags["emulated-version"]);
  const gates = apiserverGatesIn(version);
  return Object.entries(flags["feature-gates"]).flatMap(([given, value]) => {
    const name = normaliseGateName(given);
    if (!Object.hasOwn(apiserverGates, name) || Object.hasOwn(gates, name)) return [];
    const why = `feature is PreAlpha at emulated version ${version}`;
    return [`--feature-gates: cannot set feature gate ${given} to ${value}, ${why}`];
  });
}

/** Validates combinations of flags; returns one sentence for each problem. */
function validateFlags(flags: ParsedFlags<ApiserverFlags>): readonly string[] {
  const problems: string[] = [...validateEmulatedGates(flags)];
  const inBoth = flags["enable-admission-plugins"].filter((name) => flags["disable-admission-plugins"].includes(name));
  for (const name of inBoth) {
    problems.push(
      `--enable-admission-plugins and --disable-admission-plugins both contain ${name}: remove it from one of them`,
    );
  }
  if (
    flags["enable-priority-and-fairness"] &&
    flags["max-requests-inflight"] + flags["max-mutating-requests-inflight"] < 1
  ) {
    problems.push("--max-requests-inflight and --max-mutating-requests-inflight: their sum must be positive");
  }
  problems.push(...validateTokenFlags(flags));
  const suite = findUnsupportedSuite(flags["tls-cipher-suites"]);
  if (suite !== undefined) problems.push(`--tls-cipher-suites: ${suite}`);
  const controllers = flags["embedded-controllers"];
  if (flags["cluster-signing-cert-file"] !== "" && !controllers.some((name) => name === "*" || name === "csrsigning")) {
    problems.push(
      "--cluster-signing-cert-file has no effect without the controller that signs: " +
        "add --embedded-controllers=csrsigning",
    );
  }
  const { first, last } = flags["service-node-port-range"];
  const servicePort = flags["svc-service-node-port"];
  if (servicePort !== 0 && (servicePort < first || servicePort > last)) {
    problems.push(`--svc-service-node-port=${servicePort} is outside of --service-node-port-range=${first}-${last}`);
  }
  const emulated = emulatedVersion(flags["emulated-version"]);
  for (const name of ["emulation-forward-compatible", "runtime-config-emulation-forward-compatible"] as const) {
    if (flags[name] && emulated === "1.33") {
      problems.push(`--${name}=true is allowed only when --emulated-version is lower than 1.33`);
    }
  }
  if (flags["list-api-group-aliases"] && flags["api-group-aliases"] === "")
    problems.push("--list-api-group-aliases cannot be combined with an empty --api-group-aliases");
  const requestedVersion = flags["show-hidden-metrics-for-version"];
  if (requestedVersion !== "" && requestedVersion !== "1.32") {
    problems.push(
      `--show-hidden-metrics-for-version=${requestedVersion}: it must be empty or 1.32, the previous minor version`,
    );
  }
  return problems;
}

const TOKEN_MS_MIN = 3_600_000;
const TOKEN_MS_MAX = 2 ** 32 * 1000;

function validateTokenFlags(flags: ParsedFlags<ApiserverFlags>): readonly string[] {
  const issuers = flags["service-account-issuer"];
  const longest = flags["service-account-max-token-expiration"];
  const isInvalidUrl = (name: string): boolean => name.includes(":") && !URL.canParse(name);
  const problem = (name: string, why: string): string => `--service-account-issuer=${name}: ${why}`;
  return [
    ...issuers.filter((name) => name === "").map((name) => problem(name, "must not be empty")),
    ...issuers.filter(isInvalidUrl).map((name) => problem(name, "must be a valid URL because it contains a colon")),
    ...issuers
      .filter((name, index) => issuers.indexOf(name) !== index)
      .map((name) => problem(name, "must not be repeated")),
    ...(longest === 0 || (longest >= TOKEN_MS_MIN && longest <= TOKEN_MS_MAX)
      ? []
      : ["--service-account-max-token-expiration: it must lie between 1h and 2^32 seconds"]),
  ];
}
