/** The effects of flags and gates for other API servers over the same store. */
import { startPeerServers } from "../../../testing/aggregation/peer-servers.ts";
import { configWith, type Gates } from "./gate-settings.ts";
import { type Effect, file, type Name, type Settings } from "./support.ts";

const CERTIFICATE = { "proxy-client-cert-file": file("user.crt"), "proxy-client-key-file": file("user.key") };
const GATES = { UnknownVersionInteroperabilityProxy: true, StorageVersionAPI: true };
const CIDRS = "/apis/networking.k8s.io/v1beta1/servicecidrs";
const PODS = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/core.pods";
const INTERNAL = { "internal.apiserver.k8s.io/v1alpha1": "true" };
const BETA = { ...INTERNAL, "networking.k8s.io/v1beta1": "true" };

/** The status of a request that the second server serves, and whether the servers publish what they store. */
async function forwardedStatus(gates: Gates, settings: Settings = {}) {
  const { peers, apis } = configWith(gates, { ...CERTIFICATE, ...settings });
  const given = Object.entries(peers ?? {}).filter(([, value]) => value !== undefined);
  const isOff = peers === undefined ? { peers } : {};
  const configs = [INTERNAL, BETA].map((runtimeConfig) => ({ apis: { ...apis, runtimeConfig }, ...isOff }));
  await using started = await startPeerServers(configs, Object.fromEntries(given));
  const { status } = await started.send(0, `GET ${CIDRS}`);
  return { status, publishes: (await started.send(1, `GET ${PODS}`)).status === 200 };
}

/** Requests reach the other server unless the flag has this value. */
function unreachableWith(name: Name, value: string): Effect {
  return async (t) => {
    t.equal((await forwardedStatus(GATES)).status, 200);
    t.equal((await forwardedStatus(GATES, { [name]: value })).status, 503);
  };
}

export const peerEffects: Partial<Record<Name, Effect>> = {
  // The servers listen at 127.0.0.1 only.
  "peer-advertise-ip": unreachableWith("peer-advertise-ip", "127.0.0.2"),
  "peer-advertise-port": unreachableWith("peer-advertise-port", "1"),
  "peer-ca-file": unreachableWith("peer-ca-file", file("ca.crt")),
};

export const peerGateEffects: Readonly<Record<string, Effect>> = {
  UnknownVersionInteroperabilityProxy: async (t) => {
    t.same(await forwardedStatus({ StorageVersionAPI: true }), { status: 404, publishes: true });
    t.same(await forwardedStatus(GATES), { status: 200, publishes: true });
    const { StorageVersionAPI: _, ...alone } = GATES;
    t.throws(() => configWith(alone, CERTIFICATE), /requires StorageVersionAPI feature flag to be enabled/);
    t.throws(() => configWith(GATES), /error building peer proxy handler, proxy-cert-file not specified/);
  },
  StorageVersionAPI: async (t) => {
    t.same(await forwardedStatus({}), { status: 404, publishes: false });
    t.same(await forwardedStatus({ StorageVersionAPI: true }), { status: 404, publishes: true });
  },
};
