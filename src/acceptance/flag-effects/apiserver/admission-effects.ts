/** Effects of the flags for admission plugins. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Test } from "tap";
import { createCa, issueCertificate } from "../../../auth/pki/certificate-authority.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { caBundle, reviewResponse, startTestWebhook } from "../../../testing/admission/webhook-fixture.ts";
import { startAndClose } from "./support.ts";

interface Server extends AsyncDisposable {
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of all kinds
  send(line: string, body?: unknown): Promise<{ readonly status: number; readonly json: any }>;
}

type StartServer = (settings: Readonly<Record<string, string>>) => Promise<Server>;
type Effect = (t: Test) => Promise<void>;

const service = {
  metadata: { name: "s" },
  spec: { ports: [{ port: 80 }], externalIPs: ["192.0.2.7"] },
};
const event = (name: string): object => ({
  metadata: { name, namespace: "default" },
  involvedObject: { kind: "Pod", name: "web", namespace: "default" },
});

/** A webhook configuration for ConfigMaps with a timeout of a second. */
const webhookOf = (clientConfig: object): object => ({
  metadata: { name: "w" },
  webhooks: [
    {
      name: "w.example.com",
      clientConfig,
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      timeoutSeconds: 1,
    },
  ],
});

/** Writes a client certificate to the directory and returns the flags for it. */
async function clientCertificate(directory: string, commonName: string) {
  const now = systemClock.now();
  const issued = { commonName, usages: ["client"], days: 1 } as const;
  const { cert, key } = await issueCertificate(await createCa("clients", 1, now), issued, now);
  const [certFile, keyFile] = [join(directory, `${commonName}.crt`), join(directory, `${commonName}.key`)];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  return { "proxy-client-cert-file": certFile, "proxy-client-key-file": keyFile };
}

export function admissionEffects(startServer: StartServer) {
  const create = async (settings: Readonly<Record<string, string>>, path: string, ...bodies: readonly unknown[]) => {
    await using server = await startServer(settings);
    const answers = [];
    for (const body of bodies) answers.push(await server.send(`POST /api/v1/namespaces/${path}`, body));
    return answers;
  };
  return {
    "enable-admission-plugins": async (t) => {
      t.match(await create({}, "default/services", service), [{ status: 201 }]);
      const refusing = { "enable-admission-plugins": "AlwaysPullImages,DenyServiceExternalIPs" };
      t.match(await create(refusing, "default/services", service), [
        {
          status: 403,
          json: { message: 'services "s" is forbidden: Use of external IPs is denied by admission control' },
        },
      ]);
    },
    "disable-admission-plugins": async (t) => {
      const map = { metadata: { name: "m" } };
      t.match(await create({}, "nowhere/configmaps", map), [{ status: 404 }]);
      const lenient = { "disable-admission-plugins": "NamespaceLifecycle" };
      t.match(await create(lenient, "nowhere/configmaps", map), [{ status: 201 }]);
    },
    "enable-aggregator-routing": async (t) => {
      const guarded = async (settings: Readonly<Record<string, string>>) => {
        await using server = await startServer(settings);
        const { spec } = service;
        await server.send("POST /api/v1/namespaces/default/services", {
          metadata: { name: "s" },
          spec: { ports: spec.ports },
        });
        await server.send(
          "POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
          webhookOf({ service: { namespace: "default", name: "s", port: 80 } }),
        );
        return (await server.send("POST /api/v1/namespaces/default/configmaps", { metadata: { name: "m" } })).json
          .message;
      };
      const nowhere = /no endpoints available for service "s"/;
      t.notMatch(await guarded({}), nowhere);
      t.match(await guarded({ "enable-aggregator-routing": "true" }), nowhere);
    },
    "proxy-client-cert-file": async (t) => {
      await using hook = await startTestWebhook((review) => reviewResponse(review, {}));
      const callerOf = async (settings: Readonly<Record<string, string>>) => {
        await using server = await startServer(settings);
        const webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        await server.send(`POST ${webhooks}`, webhookOf({ url: hook.url, caBundle }));
        await server.send("POST /api/v1/namespaces/default/configmaps", { metadata: { name: "m" } });
        return hook.received.at(-1)?.client;
      };
      t.equal(await callerOf({}), "");
      t.equal(await callerOf(await clientCertificate(t.testdir(), "front")), "front");
    },
    "proxy-client-key-file": async (t) => {
      const directory = t.testdir();
      const [one, other] = [await clientCertificate(directory, "front"), await clientCertificate(directory, "other")];
      await t.rejects(startAndClose({ ...one, "proxy-client-key-file": other["proxy-client-key-file"] }), {
        message: /^Cannot use --proxy-client-cert-file=".*front.crt": .* its key is not the one in .*other.key$/,
      });
    },
    "admission-control-config-file": async (t) => {
      const file = join(t.testdir(), "admission.yaml");
      writeFileSync(
        file,
        `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Namespace, qps: 1, burst: 1}
`,
      );
      const limited = { "enable-admission-plugins": "EventRateLimit", "admission-control-config-file": file };
      t.match(await create(limited, "default/events", event("a"), event("b")), [
        { status: 201 },
        { status: 429, json: { message: "Too many requests: limit reached on type Namespace for key default" } },
      ]);
      await t.rejects(create({ "enable-admission-plugins": "EventRateLimit" }, ""), {
        message: "Cannot use EventRateLimit: --admission-control-config-file must name a file with its limits",
      });
    },
  } satisfies Readonly<Record<string, Effect>>;
}
