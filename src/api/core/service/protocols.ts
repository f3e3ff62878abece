/** What ports of services and endpoints may speak. */
export const PROTOCOLS: readonly string[] = ["SCTP", "TCP", "UDP"];
