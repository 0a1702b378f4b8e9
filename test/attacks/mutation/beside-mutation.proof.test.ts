// test/attacks/mutation/beside-mutation.proof.test.ts: removes one protection of the image cache, nested Docker's listener or the service
// seeds at a time, and shows that an attempt against that part then succeeds. engine-mutation.proof.test.ts and
// service-mutation.proof.test.ts cover the daemon and the services themselves.
import { BESIDE_MUTANTS } from './beside-mutants.ts';
import { BESIDE_PARTS } from './engine-parts.ts';
import { IMAGE_PARTS } from './image-parts.ts';
import { tryParts } from './parts.ts';

tryParts({ ...IMAGE_PARTS, ...BESIDE_PARTS }, BESIDE_MUTANTS);
