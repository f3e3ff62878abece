/**
 * The protocol of konnectivity between the API server and its proxy.
 * https://github.com/kubernetes-sigs/apiserver-network-proxy/blob/master/konnectivity-client/proto/client/client.proto
 */
import { bigInt64, binary, int32, message, optional, pointer, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

export const PROXY_PATH = "/ProxyService/Proxy";

export const PACKET = {
  dialRequest: 0,
  dialResponse: 1,
  closeRequest: 2,
  closeResponse: 3,
  data: 4,
  closeDial: 5,
} as const;

/** `random` identifies a request to connect, `connectID` the connection that results. */
export const packet = message("Packet", {
  type: optional(1, int32),
  dialRequest: pointer(
    2,
    message("DialRequest", {
      protocol: optional(1, string),
      address: optional(2, string),
      random: optional(3, bigInt64),
    }),
  ),
  dialResponse: pointer(
    3,
    message("DialResponse", {
      error: optional(1, string),
      connectID: optional(2, bigInt64),
      random: optional(3, bigInt64),
    }),
  ),
  data: pointer(
    4,
    message("Data", { connectID: optional(1, bigInt64), error: optional(2, string), data: optional(3, binary) }),
  ),
  closeRequest: pointer(5, message("CloseRequest", { connectID: optional(1, bigInt64) })),
  closeResponse: pointer(6, message("CloseResponse", { error: optional(1, string), connectID: optional(2, bigInt64) })),
  closeDial: pointer(7, message("CloseDial", { random: optional(1, bigInt64) })),
});
export type Packet = Infer<typeof packet>;
