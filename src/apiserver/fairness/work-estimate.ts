/** The work of a request: seats while it is handled, and seats for a while after its response. */
export interface WorkEstimate {
  readonly initialSeats: number;
  /** For the events of a write, which watches receive after the response. */
  readonly finalSeats: number;
  readonly additionalLatencyMs: number;
}

/** The duration of a request before it is known. */
export const ESTIMATED_SERVICE_MS = 3;

export function maxSeatsOf({ initialSeats, finalSeats }: WorkEstimate): number {
  return Math.max(initialSeats, finalSeats);
}

/** In seat-seconds. */
export function totalWorkOf({ initialSeats, finalSeats, additionalLatencyMs }: WorkEstimate): number {
  return (initialSeats * ESTIMATED_SERVICE_MS + finalSeats * additionalLatencyMs) / 1000;
}
