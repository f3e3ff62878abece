import { podKind } from "../../../api/core/pod/kind.ts";
import type { Client } from "../../../client/client.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { failed } from "../../framework/rejection.ts";

const NAME = "DefaultBinder";

/** Binds pods through the API. */
export function createDefaultBinder(client: Client): Plugin {
  return {
    name: NAME,
    points: ["bind"],
    async bind({ pod: { name, namespace, uid } }, nodeName, signal) {
      const binding = {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name, namespace, uid },
        target: { kind: "Node", name: nodeName },
      };
      try {
        await client.createSubresource(podKind, { name, namespace }, "binding", binding, signal);
        return undefined;
      } catch (error) {
        return failed(NAME, error);
      }
    },
  };
}
