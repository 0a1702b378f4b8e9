// test/attacks/mutation/beside-mutation.proof.test.ts: takes each protection out of single parts of what stands beside a sandbox, one at a time, and shows that an
// attempt against that part then succeeds: the cache of images, the door to an engine inside and its answers, the seeds of services.
// What an engine or a service can do is in engine-mutation.proof.test.ts and service-mutation.proof.test.ts.
import { BESIDE_MUTANTS } from './beside-mutants.ts';
import { BESIDE_PARTS } from './engine-parts.ts';
import { IMAGE_PARTS } from './image-parts.ts';
import { tryParts } from './parts.ts';

tryParts({ ...IMAGE_PARTS, ...BESIDE_PARTS }, BESIDE_MUTANTS);
