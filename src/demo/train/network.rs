//! The model: one hidden layer that learns three spiral arms apart, trained with `AdamW`.
//!
//! Every number depends only on the seed, the settings and the number of steps taken. Sums run in one
//! fixed order and nothing is fused or shared between threads, so equal runs are equal in every bit.

use super::arguments::{Config, EXAMPLES};

const INPUTS: usize = 2;
const HIDDEN: usize = 16;
const CLASSES: usize = 3;
const HIDDEN_WEIGHTS: usize = HIDDEN * INPUTS;
const OUTPUT_WEIGHTS: usize = CLASSES * HIDDEN;
/// Weights and biases of both layers, in the order that [`Layers`] names.
pub(super) const PARAMETERS: usize = HIDDEN_WEIGHTS + HIDDEN + OUTPUT_WEIGHTS + CLASSES;

/// Keeps a division by a vanishing mean of squares finite; the usual value for Adam.
const EPSILON: f64 = 1e-8;

/// A generator of random numbers whose whole state is one word, so that a checkpoint can hold it.
///
/// `SplitMix64` (Steele, Lea, Flood 2014).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn next_u32(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// Uniform from -1 up, below 1.
    fn centred(&mut self) -> f64 {
        f64::from(self.next_u32()) / 2_147_483_648.0 - 1.0
    }
}

/// One point and its arm.
#[derive(Clone, Copy, Debug)]
struct Example {
    point: [f64; INPUTS],
    class: usize,
}

/// The generated data.
#[derive(Debug)]
pub(super) struct Examples(Vec<Example>);

impl Examples {
    /// Three arms of a spiral with some noise.
    pub(super) fn spiral(seed: u64) -> Self {
        let mut random = Random(seed ^ 0x5eed_da7a);
        let arms = (0..CLASSES).cycle();
        let examples = (0..EXAMPLES).zip(arms).map(|(n, class)| {
            let along = f64::from(n) / f64::from(EXAMPLES);
            let start = [0.0, 2.1, 4.2].get(class).copied().unwrap_or_default();
            let angle = start + 4.0 * along + 0.2 * random.centred();
            let radius = 0.1 + along;
            Example { point: [radius * angle.cos(), radius * angle.sin()], class }
        });
        Self(examples.collect())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The parts of a vector of parameters, or of their gradients.
struct Layers<'a> {
    hidden_weights: &'a [f64],
    hidden_biases: &'a [f64],
    output_weights: &'a [f64],
    output_biases: &'a [f64],
}

impl<'a> Layers<'a> {
    fn of(parameters: &'a [f64; PARAMETERS]) -> Self {
        let (hidden_weights, rest) = parameters.split_at(HIDDEN_WEIGHTS);
        let (hidden_biases, rest) = rest.split_at(HIDDEN);
        let (output_weights, output_biases) = rest.split_at(OUTPUT_WEIGHTS);
        Self { hidden_weights, hidden_biases, output_weights, output_biases }
    }

    /// Activations of the hidden layer, and the probability of each class.
    fn forward(&self, point: &[f64; INPUTS]) -> ([f64; HIDDEN], [f64; CLASSES]) {
        let mut hidden = [0.0; HIDDEN];
        let rows = self.hidden_weights.chunks_exact(INPUTS).zip(self.hidden_biases);
        for (unit, (weights, bias)) in hidden.iter_mut().zip(rows) {
            *unit = (dot(weights, point) + bias).tanh();
        }
        let mut output = [0.0; CLASSES];
        let rows = self.output_weights.chunks_exact(HIDDEN).zip(self.output_biases);
        for (logit, (weights, bias)) in output.iter_mut().zip(rows) {
            *logit = dot(weights, &hidden) + bias;
        }
        let highest = output.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for logit in &mut output {
            *logit = (*logit - highest).exp();
            sum += *logit;
        }
        for probability in &mut output {
            *probability /= sum;
        }
        (hidden, output)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

/// Cross-entropy of one example, kept finite where a probability underflows.
fn cross_entropy(probabilities: &[f64; CLASSES], class: usize) -> f64 {
    let probability = probabilities.get(class).copied().unwrap_or_default();
    // `max` would turn the NaN of a diverged run into a number.
    if probability < 1e-300 { 1e-300_f64.ln().abs() } else { -probability.ln() }
}

/// Everything that the next step depends on; what a checkpoint holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// Steps taken.
    pub(super) step: u32,
    /// Draws the batches.
    pub(super) random: Random,
    /// Weights and biases.
    pub(super) parameters: [f64; PARAMETERS],
    /// Adam's running mean of gradients.
    pub(super) mean: [f64; PARAMETERS],
    /// Adam's running mean of squared gradients.
    pub(super) square: [f64; PARAMETERS],
}

impl State {
    /// Small random weights, no biases, step 0.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut parameters = [0.0; PARAMETERS];
        for (n, parameter) in parameters.iter_mut().enumerate() {
            let is_weight =
                n < HIDDEN_WEIGHTS || (HIDDEN_WEIGHTS + HIDDEN..PARAMETERS - CLASSES).contains(&n);
            if is_weight {
                *parameter = 0.5 * random.centred();
            }
        }
        Self { step: 0, random, parameters, mean: [0.0; PARAMETERS], square: [0.0; PARAMETERS] }
    }

    /// Takes one step on a random batch; returns the batch's mean loss before it.
    pub(super) fn train(&mut self, examples: &Examples, config: &Config) -> f64 {
        let mut loss = 0.0;
        let mut gradient = [0.0; PARAMETERS];
        for _ in 0..config.batch_size {
            let at = self.random.next_u32() % EXAMPLES;
            if let Some(example) = examples.0.get(at as usize) {
                loss += add_gradient(&self.parameters, example, &mut gradient);
            }
        }
        self.step += 1;
        self.adamw(&gradient, config);
        loss / f64::from(config.batch_size)
    }

    fn adamw(&mut self, gradient: &[f64; PARAMETERS], config: &Config) {
        let (b1, b2) = (config.adam_b1, config.adam_b2);
        let steps = f64::from(self.step);
        let (mean_bias, square_bias) = (1.0 - b1.powf(steps), 1.0 - b2.powf(steps));
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((parameter, (mean, square)), sum) in
            self.parameters.iter_mut().zip(moments).zip(gradient)
        {
            let slope = sum / f64::from(config.batch_size);
            *mean = b1 * *mean + (1.0 - b1) * slope;
            *square = b2 * *square + (1.0 - b2) * slope * slope;
            let direction = (*mean / mean_bias) / ((*square / square_bias).sqrt() + EPSILON);
            *parameter -= config.learning_rate * (direction + config.weight_decay * *parameter);
        }
    }

    /// Mean loss over all examples.
    pub(super) fn loss(&self, examples: &Examples) -> f64 {
        let layers = Layers::of(&self.parameters);
        let sum = examples.0.iter().fold(0.0, |sum, example| {
            let (_, probabilities) = layers.forward(&example.point);
            sum + cross_entropy(&probabilities, example.class)
        });
        sum / f64::from(EXAMPLES)
    }
}

/// Adds the gradient of one example's loss, by back-propagation; returns that loss.
fn add_gradient(
    parameters: &[f64; PARAMETERS],
    example: &Example,
    gradient: &mut [f64; PARAMETERS],
) -> f64 {
    let layers = Layers::of(parameters);
    let (hidden, probabilities) = layers.forward(&example.point);
    let (hidden_weights, rest) = gradient.split_at_mut(HIDDEN_WEIGHTS);
    let (hidden_biases, rest) = rest.split_at_mut(HIDDEN);
    let (output_weights, output_biases) = rest.split_at_mut(OUTPUT_WEIGHTS);

    let mut into_hidden = [0.0; HIDDEN];
    let rows = output_weights.chunks_exact_mut(HIDDEN).zip(output_biases);
    let weights = layers.output_weights.chunks_exact(HIDDEN);
    for ((class, (row, bias)), weights) in rows.enumerate().zip(weights) {
        let target = if class == example.class { 1.0 } else { 0.0 };
        let slope = probabilities.get(class).copied().unwrap_or_default() - target;
        *bias += slope;
        for ((weight, unit), (down, into)) in
            row.iter_mut().zip(&hidden).zip(weights.iter().zip(&mut into_hidden))
        {
            *weight += slope * unit;
            *into += slope * down;
        }
    }
    let rows = hidden_weights.chunks_exact_mut(INPUTS).zip(hidden_biases);
    for ((row, bias), (unit, into)) in rows.zip(hidden.iter().zip(&into_hidden)) {
        let slope = into * (1.0 - unit * unit);
        *bias += slope;
        for (weight, input) in row.iter_mut().zip(&example.point) {
            *weight += slope * input;
        }
    }
    cross_entropy(&probabilities, example.class)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gradient is that of the loss: compared with the slope of a small step along each parameter.
    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let example = Example { point: [0.3, -0.7], class: 2 };
        let parameters = State::new(3).parameters;
        let loss = |parameters: &[f64; PARAMETERS]| {
            let (_, probabilities) = Layers::of(parameters).forward(&example.point);
            cross_entropy(&probabilities, example.class)
        };
        let mut gradient = [0.0; PARAMETERS];
        add_gradient(&parameters, &example, &mut gradient);
        for n in 0..PARAMETERS {
            let (mut above, mut below) = (parameters, parameters);
            above[n] += 1e-6;
            below[n] -= 1e-6;
            let slope = (loss(&above) - loss(&below)) / 2e-6;
            assert!((slope - gradient[n]).abs() < 1e-8, "{n}: {slope} and {}", gradient[n]);
        }
    }

    #[test]
    fn numbers_are_those_of_splitmix() {
        // The generator's published first values for seed 1234567.
        let mut random = Random(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }
}
