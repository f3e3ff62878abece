/** A node may request service account tokens that are bound to its pods, for the audiences that the pods use. */
import type { TokenRequest } from "../../../api/authentication/token-request.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { csiDriverKind } from "../../../api/storage/csi-driver/kind.ts";
import { type AdmissionRequest, metadataOf, newForbidden } from "../../chain/attributes.ts";
import { getPod } from "./pods.ts";
import type { Deps } from "./restriction.ts";

export async function restrictToken(node: string, request: AdmissionRequest, deps: Deps): Promise<void> {
  if (request.operation !== "CREATE" || request.subresource !== "token") return;
  const { spec } = request.object as TokenRequest;
  const { apiVersion, kind, name = "", uid = "" } = spec?.boundObjectRef ?? {};
  if (apiVersion !== "v1" || kind !== "Pod" || name === "") {
    throw newForbidden(request, "node requested token not bound to a pod");
  }
  if (uid === "") throw newForbidden(request, "node requested token with a pod binding without a uid");
  const pod = await getPod(request, name, deps);
  if (uid !== metadataOf(pod).uid) {
    const mismatch = `the UID in the bound object reference (${uid}) does not match the UID in record`;
    throw newForbidden(request, `${mismatch}. The object might have been deleted and then recreated`);
  }
  if (pod.spec?.nodeName !== node) {
    throw newForbidden(request, "node requested token bound to a pod scheduled on a different node");
  }
  if (!deps.isFeatureEnabled("ServiceAccountNodeAudienceRestriction")) return;
  const [audience = "", ...more] = spec?.audiences ?? [];
  if (more.length > 0) throw newForbidden(request, "node may only request 0 or 1 audiences");
  if (await isAudienceOfVolume(pod, audience, request, deps)) return;
  if (await isAudienceGranted(audience, request, deps)) return;
  const reason = `audience ${JSON.stringify(audience)} not found in pod spec volume`;
  throw newForbidden(request, `${reason}, ${request.user.name} is not authorized to request tokens for this audience`);
}

/** Whether a volume of the pod, or its CSI driver, uses the audience. An empty audience is the API server. */
async function isAudienceOfVolume(pod: Pod, audience: string, request: AdmissionRequest, deps: Deps): Promise<boolean> {
  for (const volume of pod.spec?.volumes ?? []) {
    const sources = volume.projected?.sources ?? [];
    const isProjected = sources.some(
      ({ serviceAccountToken }) =>
        serviceAccountToken !== undefined && (serviceAccountToken.audience ?? "") === audience,
    );
    if (isProjected) return true;
    const name = await findDriver(volume, pod, request, deps);
    if (name === undefined) continue;
    const driver = await deps.reader.get(csiDriverKind, "", name, request.signal);
    if (driver?.spec.tokenRequests?.some((each) => (each.audience ?? "") === audience)) return true;
  }
  return false;
}

async function findDriver(
  volume: Volume,
  pod: Pod,
  { namespace, signal }: AdmissionRequest,
  { reader }: Deps,
): Promise<string | undefined> {
  if (volume.csi !== undefined) return volume.csi.driver;
  const ephemeralClaim = volume.ephemeral === undefined ? undefined : `${metadataOf(pod).name}-${volume.name}`;
  const claimName = volume.persistentVolumeClaim?.claimName ?? ephemeralClaim;
  if (claimName === undefined) return undefined;
  const claim = await reader.get(persistentVolumeClaimKind, namespace, claimName, signal);
  const name = claim?.spec?.volumeName ?? "";
  if (name === "") return undefined;
  return (await reader.get(persistentVolumeKind, "", name, signal))?.spec?.csi?.driver;
}

/** Whether rules grant the audience: the verb is special, and the resource is the audience. */
async function isAudienceGranted(audience: string, request: AdmissionRequest, { authorizer }: Deps): Promise<boolean> {
  const { decision } = await authorizer.authorize({
    user: request.user,
    verb: "request-serviceaccounts-token-audience",
    isResourceRequest: true,
    namespace: request.namespace,
    apiGroup: "",
    apiVersion: "v1",
    resource: audience,
    subresource: "",
    name: request.name,
    path: "",
  });
  return decision === "allow";
}
