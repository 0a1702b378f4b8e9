// attacks/table.ts: every attempt there is. `ags doctor --attack` runs them all; tests run them with every backend; SECURITY.md names them.
import type { AnyAttack, Attack } from './attack.ts';
import { AGENT_ATTACKS } from './table-agents.ts';
import { ENGINE_ATTACKS, ENGINE_CONTROL } from './table-engine.ts';
import { FILE_ATTACKS } from './table-files.ts';
import { GATEWAY_ATTACKS } from './table-gateway.ts';
import { APART_ATTACKS, GIT_ATTACKS, MERGE_ATTACKS } from './table-git.ts';
import { GREED_ATTACKS } from './table-greed.ts';
import { IDENTITY_ATTACKS } from './table-identity.ts';
import { KERNEL_ATTACKS } from './table-kernel.ts';
import { LASTING_NEIGHBOUR_ATTACKS, LIVE_NEIGHBOUR_ATTACKS } from './table-neighbours.ts';
import { NETWORK_ATTACKS } from './table-network.ts';
import { SECRET_ATTACKS } from './table-secrets.ts';
import { LASTING_SERVICE_ATTACKS, SERVICE_ATTACKS } from './table-services.ts';

/** From inside, with nobody else there. */
export const INSIDE_ATTACKS: readonly Attack[] = [
  ...FILE_ATTACKS,
  ...KERNEL_ATTACKS,
  ...NETWORK_ATTACKS,
  ...IDENTITY_ATTACKS,
  ...GATEWAY_ATTACKS,
  ...SECRET_ATTACKS,
  ...SERVICE_ATTACKS,
];

export const ATTACKS: readonly AnyAttack[] = [
  ...INSIDE_ATTACKS,
  ...LIVE_NEIGHBOUR_ATTACKS,
  ...LASTING_NEIGHBOUR_ATTACKS,
  ...LASTING_SERVICE_ATTACKS,
  ENGINE_CONTROL,
  ...ENGINE_ATTACKS,
  ...GIT_ATTACKS,
  ...MERGE_ATTACKS,
  ...AGENT_ATTACKS,
  ...APART_ATTACKS,
  ...GREED_ATTACKS,
];
