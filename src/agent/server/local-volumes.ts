/**
 * `/localVolumes/{volume}/ensure` and `/localVolumes/{volume}/remove`: the directories of provisioned volumes. Not
 * part of kubelet's API; the local path provisioner calls it through the API server's node proxy.
 */
import { join } from "node:path";
import { badRequest, StatusError } from "../../api/status.ts";
import { readBody } from "../../http/body.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { jsonResponse } from "../../http/respond.ts";
import type { Logger } from "../../std/log/logger.ts";
import { podsDir } from "../pods/directories.ts";
import { createProjectQuotas, systemTools } from "../volumes/local/project-quotas.ts";
import { ProvisionedVolumeError, ProvisionedVolumes } from "../volumes/local/provisioned-volumes.ts";
import { systemMounter } from "../volumes/mount/mounter.ts";

const BODY_BYTES_MAX = 4096;

export function openProvisionedVolumes(rootDir: string, log: Logger): ProvisionedVolumes {
  const onFailure = (directory: string, error: unknown): void =>
    log.warn("The size of a volume is not enforced", { directory, error: String(error) });
  return new ProvisionedVolumes({
    root: join(rootDir, "local-volumes"),
    mounter: systemMounter,
    podsDir: podsDir({ rootDir, podLogsDir: "" }),
    quotas: createProjectQuotas({ ...systemTools, onFailure }),
  });
}

export async function serveLocalVolume(
  volumes: ProvisionedVolumes,
  request: HttpRequest,
  { volume = "" }: Readonly<Record<string, string>>,
): Promise<HttpResponse> {
  try {
    if (request.path.endsWith("/ensure"))
      return jsonResponse(200, await volumes.ensure(volume, await readSize(request)));
    await volumes.remove(volume);
    return jsonResponse(200, {});
  } catch (error) {
    if (error instanceof ProvisionedVolumeError)
      throw new StatusError(409, "Conflict", error.message, { cause: error });
    throw error;
  }
}

async function readSize(request: HttpRequest): Promise<number> {
  const text = (await readBody(request, BODY_BYTES_MAX)).toString("utf8");
  let value: unknown;
  try {
    value = (JSON.parse(text) as { readonly sizeBytes?: unknown } | null)?.sizeBytes;
  } catch {
    value = undefined;
  }
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw badRequest("the body must have sizeBytes, a number of bytes");
  }
  return value;
}
