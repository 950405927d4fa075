//! Classes of bytes: those that some automata do not tell apart.

/// A partition of the bytes, its classes numbered by their first bytes.
#[derive(Debug, Clone)]
pub(super) struct ByteClasses {
    pub of: [u8; 256],
    pub count: usize,
}

impl ByteClasses {
    /// All bytes in one class.
    pub fn one() -> Self {
        Self { of: [0; 256], count: 1 }
    }

    /// The coarsest classes that are as fine as each of several partitions.
    pub fn joint<'a>(partitions: impl Iterator<Item = &'a [u8; 256]>) -> Self {
        let mut joint = Self::one();
        for classes in partitions {
            let kinds = classes.iter().max().map_or(0, |&max| usize::from(max) + 1);
            joint.refine(kinds, |byte| usize::from(classes[usize::from(byte)]));
        }
        joint
    }

    /// Tell bytes apart that are of different kinds. A kind is a number below `kinds`.
    pub fn refine(&mut self, kinds: usize, kind: impl Fn(u8) -> usize) {
        const NEW: u16 = u16::MAX;
        let mut ids = vec![NEW; self.count * kinds];
        let mut next = 0;
        for byte in 0..=255u8 {
            let class = &mut self.of[usize::from(byte)];
            let id = &mut ids[usize::from(*class) * kinds + kind(byte)];
            if *id == NEW {
                *id = next;
                next += 1;
            }
            *class = *id as u8;
        }
        self.count = usize::from(next);
    }

    /// The first byte of each class.
    pub fn samples(&self) -> Vec<u8> {
        let mut samples = Vec::with_capacity(self.count);
        for byte in 0..=255u8 {
            if usize::from(self.of[usize::from(byte)]) == samples.len() {
                samples.push(byte);
            }
        }
        samples
    }
}

/// The class of each sample in a partition.
pub(super) fn classes_of(samples: &[u8], byte_class: &[u8; 256]) -> Vec<usize> {
    samples.iter().map(|&byte| usize::from(byte_class[usize::from(byte)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joint_classes_are_numbered_by_their_first_bytes() {
        let upper: [u8; 256] = std::array::from_fn(|b| u8::from(b < 0x80));
        let odd: [u8; 256] = std::array::from_fn(|b| b as u8 % 2);
        let joint = ByteClasses::joint([&upper, &odd].into_iter());
        assert_eq!((joint.count, joint.samples()), (4, vec![0, 1, 0x80, 0x81]));
        assert!((0..256).all(|b| usize::from(joint.of[b]) == b / 0x80 * 2 + b % 2));
        let all: [u8; 256] = std::array::from_fn(|b| 255 - b as u8);
        let joint = ByteClasses::joint([&all, &upper].into_iter());
        assert_eq!((joint.count, joint.samples()), (256, (0..=255).collect()));
        assert_eq!(classes_of(&[7, 200], &upper), [1, 0]);
    }
}
