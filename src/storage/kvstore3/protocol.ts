/**
 * The messages of etcd v3 that the engine uses:
 * https://github.com/etcd-io/etcd/blob/main/api/etcdserverpb/rpc.proto
 */

import { bigInt64, binary, boolean, int64, list, message, optional, pointer, string } from "../../schema/define.ts";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import type { Infer } from "../../schema/schema.ts";

const header = message("etcdserverpb.ResponseHeader", { revision: optional(3, int64) });

const keyValue = message("mvccpb.KeyValue", {
  key: optional(1, binary),
  createRevision: optional(2, int64),
  modRevision: optional(3, int64),
  version: optional(4, int64),
  value: optional(5, binary),
  lease: optional(6, bigInt64),
});
export type EtcdKeyValue = Infer<typeof keyValue>;

const rangeRequest = message("etcdserverpb.RangeRequest", {
  key: optional(1, binary),
  rangeEnd: optional(2, binary),
  limit: optional(3, int64),
  revision: optional(4, int64),
  keysOnly: optional(8, boolean),
  countOnly: optional(9, boolean),
  minModRevision: optional(10, int64),
});
const rangeResponse = message("etcdserverpb.RangeResponse", {
  header: pointer(1, header),
  kvs: optional(2, list(keyValue)),
  more: optional(3, boolean),
  count: optional(4, int64),
});
export type RangeRequest = Infer<typeof rangeRequest>;
export type RangeResponse = Infer<typeof rangeResponse>;

const putRequest = message("etcdserverpb.PutRequest", {
  key: optional(1, binary),
  value: optional(2, binary),
  lease: optional(3, bigInt64),
});
const deleteRangeRequest = message("etcdserverpb.DeleteRangeRequest", {
  key: optional(1, binary),
  rangeEnd: optional(2, binary),
});

const requestOp = message("etcdserverpb.RequestOp", {
  range: pointer(1, rangeRequest),
  put: pointer(2, putRequest),
  deleteRange: pointer(3, deleteRangeRequest),
});
const responseOp = message("etcdserverpb.ResponseOp", { range: pointer(1, rangeResponse) });

const compare = message("etcdserverpb.Compare", {
  result: optional(1, int64),
  target: optional(2, int64),
  key: optional(3, binary),
  version: optional(4, int64),
  modRevision: optional(6, int64),
});
/** `Compare.CompareTarget` */
export const CompareTarget = { version: 0, modRevision: 2 } as const;

const watchCreateRequest = message("etcdserverpb.WatchCreateRequest", {
  key: optional(1, binary),
  rangeEnd: optional(2, binary),
  startRevision: optional(3, int64),
  progressNotify: optional(4, boolean),
  prevKv: optional(6, boolean),
  fragment: optional(8, boolean),
});
const event = message("mvccpb.Event", {
  type: optional(1, int64),
  kv: pointer(2, keyValue),
  prevKv: pointer(3, keyValue),
});
export type EtcdEvent = Infer<typeof event>;
/** `Event.EventType` */
export const EVENT_DELETE = 1;

const watchRequest = message("etcdserverpb.WatchRequest", {
  create: pointer(1, watchCreateRequest),
  progress: pointer(3, message("etcdserverpb.WatchProgressRequest", {})),
});
export type WatchRequest = Infer<typeof watchRequest>;
const watchResponse = message("etcdserverpb.WatchResponse", {
  header: pointer(1, header),
  watchId: optional(2, int64),
  created: optional(3, boolean),
  canceled: optional(4, boolean),
  compactRevision: optional(5, int64),
  cancelReason: optional(6, string),
  fragment: optional(7, boolean),
  events: optional(11, list(event)),
});
export type WatchResponse = Infer<typeof watchResponse>;

const alarmMember = message("etcdserverpb.AlarmMember", { alarm: optional(2, int64) });

export const rangeMethod = {
  path: "/etcdserverpb.KV/Range",
  request: rangeRequest,
  response: rangeResponse,
} as const satisfies GrpcMethod;

export const putMethod = {
  path: "/etcdserverpb.KV/Put",
  request: putRequest,
  response: message("etcdserverpb.PutResponse", { header: pointer(1, header) }),
} as const satisfies GrpcMethod;

export const deleteRangeMethod = {
  path: "/etcdserverpb.KV/DeleteRange",
  request: deleteRangeRequest,
  response: message("etcdserverpb.DeleteRangeResponse", { header: pointer(1, header) }),
} as const satisfies GrpcMethod;

export const txnMethod = {
  path: "/etcdserverpb.KV/Txn",
  request: message("etcdserverpb.TxnRequest", {
    compare: optional(1, list(compare)),
    success: optional(2, list(requestOp)),
    failure: optional(3, list(requestOp)),
  }),
  response: message("etcdserverpb.TxnResponse", {
    header: pointer(1, header),
    succeeded: optional(2, boolean),
    responses: optional(3, list(responseOp)),
  }),
} as const satisfies GrpcMethod;
export type TxnRequest = Infer<typeof txnMethod.request>;
export type TxnResponse = Infer<typeof txnMethod.response>;

export const compactMethod = {
  path: "/etcdserverpb.KV/Compact",
  request: message("etcdserverpb.CompactionRequest", { revision: optional(1, int64) }),
  response: message("etcdserverpb.CompactionResponse", { header: pointer(1, header) }),
} as const satisfies GrpcMethod;

export const watchMethod = {
  path: "/etcdserverpb.Watch/Watch",
  request: watchRequest,
  response: watchResponse,
} as const satisfies GrpcMethod;

export const leaseGrantMethod = {
  path: "/etcdserverpb.Lease/LeaseGrant",
  request: message("etcdserverpb.LeaseGrantRequest", { ttl: optional(1, int64), id: optional(2, bigInt64) }),
  response: message("etcdserverpb.LeaseGrantResponse", { id: optional(2, bigInt64), ttl: optional(3, int64) }),
} as const satisfies GrpcMethod;

export const leaseTimeToLiveMethod = {
  path: "/etcdserverpb.Lease/LeaseTimeToLive",
  request: message("etcdserverpb.LeaseTimeToLiveRequest", { id: optional(1, bigInt64) }),
  response: message("etcdserverpb.LeaseTimeToLiveResponse", { id: optional(2, bigInt64), ttl: optional(3, int64) }),
} as const satisfies GrpcMethod;

export const statusMethod = {
  path: "/etcdserverpb.Maintenance/Status",
  request: message("etcdserverpb.StatusRequest", {}),
  response: message("etcdserverpb.StatusResponse", {
    header: pointer(1, header),
    version: optional(2, string),
    dbSize: optional(3, int64),
  }),
} as const satisfies GrpcMethod;

export const alarmMethod = {
  path: "/etcdserverpb.Maintenance/Alarm",
  request: message("etcdserverpb.AlarmRequest", { action: optional(1, int64) }),
  response: message("etcdserverpb.AlarmResponse", { alarms: optional(2, list(alarmMember)) }),
} as const satisfies GrpcMethod;
/** `AlarmType` */
export const alarmTypes = { 1: "NOSPACE", 2: "CORRUPT" } as const;
