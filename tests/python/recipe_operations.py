#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operations of published recipes against the libraries they come from, by the very parameters that suture drew: they are
read from the plan as JSON and given to batchgeneratorsv2 and MONAI.

    python3 recipe_operations.py PROGRAM

PROGRAM is made from recipe_operations.cpp. Ends with 77, which ctest reports as skipped, where neither library is there.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; name a Python with PyTorch and batchgeneratorsv2 or MONAI in SUTURE_PYTHON")
    sys.exit(77)
torch.set_num_threads(1)
try:
    from batchgeneratorsv2.transforms.intensity.brightness import MultiplicativeBrightnessTransform
    from batchgeneratorsv2.transforms.intensity.contrast import ContrastTransform
    from batchgeneratorsv2.transforms.intensity.gamma import GammaTransform
    from batchgeneratorsv2.transforms.noise.gaussian_blur import GaussianBlurTransform
    from batchgeneratorsv2.transforms.spatial import spatial
    from batchgeneratorsv2.transforms.spatial.low_resolution import SimulateLowResolutionTransform
    BATCHGENERATORS = True
except ImportError:
    BATCHGENERATORS = False
try:
    from monai.transforms import GaussianSmooth, GibbsNoise, KSpaceSpikeNoise, RandBiasField
    MONAI = True
except ImportError:
    MONAI = False

CHANNELS, SHAPE = 2, (24, 30, 36)


def volume():
    random = np.random.default_rng(3)
    z, y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in SHAPE), indexing="ij")
    smooth = np.stack([np.cos(4 * x + y) + z * z, np.exp(-4 * (x * x + y * y)) - z])
    labels = (3 * (smooth[0] > 0.6) + 2 * (smooth[1] > 0.2)).astype(np.int16)
    return (smooth + 0.2 * random.normal(size=smooth.shape)).astype(np.float32), labels


def parameters(plan, step=0):
    return plan["samples"][0]["steps"][step]["parameters"]


# Of batchgeneratorsv2: the transform's own code on the parameters of the plan.

def blur(image, plan):
    sigma = parameters(plan)["sigma"][:CHANNELS]
    applied = torch.tensor([s[0] > 0 for s in sigma])
    return GaussianBlurTransform()._apply_to_image(image, apply_to_channel=applied,
                                                   sigmas=[s for s in sigma if s[0] > 0])


def per_channel(values):
    return torch.arange(CHANNELS), torch.tensor(values[:CHANNELS], dtype=torch.float32)


def brightness(image, plan):
    drawn = parameters(plan)["channels"]
    channels, factors = per_channel([c["factor"] for c in drawn])
    return MultiplicativeBrightnessTransform((1, 1), False)._apply_to_image(image, apply_to_channel=channels,
                                                                            multipliers=factors)


def contrast(image, plan):
    channels, factors = per_channel(parameters(plan)["factor"])
    return ContrastTransform((1, 1), True, False)._apply_to_image(image, apply_to_channel=channels,
                                                                  multipliers=factors)


def low_resolution(image, plan):
    zoom = parameters(plan)["zoom"][:CHANNELS]
    return SimulateLowResolutionTransform((1, 1), False, True, ())._apply_to_image(
        image, apply_to_channel=list(range(CHANNELS)), scales=torch.tensor([[s] * 3 for s in zoom]))


def gamma(image, plan, invert=False):
    channels, exponents = per_channel(parameters(plan)["exponent"])
    every = torch.ones(CHANNELS, dtype=torch.bool)
    return GammaTransform((1, 1), 0, False, 1, 1)._apply_to_image(image, apply_to_channel=channels, retain_stats=every,
                                                                  invert_image=every if invert else ~every,
                                                                  gamma=exponents)


def inverted_gamma(image, plan):
    return gamma(image, plan, invert=True)


def turned(image, labels, plan):
    patch = [n * 2 // 3 for n in SHAPE]
    transform = spatial.SpatialTransform(patch, 0, False, p_rotation=1, rotation=0.0, p_scaling=1, scaling=1.0,
                                         border_mode_seg="constant", padding_value_seg=-1)
    grid = spatial._create_centered_identity_grid2(patch).float()
    affine = spatial.create_affine_matrix_3d(np.radians(parameters(plan)["rotate_deg"]), parameters(plan, 1)["scale"])
    grid = spatial._convert_my_grid_to_grid_sample_grid(torch.matmul(grid, torch.from_numpy(affine.T).float()), SHAPE)
    return (transform._apply_to_image(image, grid=grid),
            transform._apply_to_segmentation(torch.from_numpy(labels)[None], grid=grid)[0])


# Of MONAI.

def bias_field(image, plan):
    transform = RandBiasField(degree=3)
    transform._coeff = parameters(plan)["coefficients"][:20]
    transform._do_transform = True
    return transform(image, randomize=False)


def gibbs(image, plan):
    return torch.stack([GibbsNoise(alpha)(image[c:c + 1])[0]
                        for c, alpha in enumerate(parameters(plan)["alpha"][:CHANNELS])])


def spike(image, plan):
    drawn = parameters(plan)
    locations = [(c, *drawn["location"][c]) for c in range(CHANNELS)]
    return KSpaceSpikeNoise(locations, drawn["intensity"][:CHANNELS])(image)


def sharpen(image, plan):
    drawn = parameters(plan)
    smooth = torch.stack([GaussianSmooth(drawn["sigma"][c])(image[c:c + 1])[0] for c in range(CHANNELS)])
    amount = torch.tensor(drawn["amount"][:CHANNELS])[:, None, None, None]
    return image + amount * (image - smooth)


# Largest difference as a share of the range of the image.
OPERATIONS = ([(f.__name__, f, 2e-5) for f in (blur, brightness, contrast, low_resolution, gamma, inverted_gamma)]
              if BATCHGENERATORS else []) + (
    [(f.__name__, f, 2e-5) for f in (bias_field, gibbs, spike, sharpen)] if MONAI else [])


class Comparison:
    def __init__(self, program, folder):
        self.program, self.folder, self.wrong, self.count = program, folder, 0, 0

    def suture(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    def plan(self, operation, seed):
        made = self.suture("plan", operation, self.folder / "image.npy", seed)
        (self.folder / "plan.json").write_text(made)
        return json.loads(made)

    def result(self, name, kind, shape):
        return np.fromfile(self.folder / f"out.{name}", kind).reshape(shape)

    def expect(self, what, holds, found):
        self.count += 1
        if not holds:
            self.wrong += 1
            print(f"differs: {what}: {found}")


def main():
    if not BATCHGENERATORS and not MONAI:
        print("skipped: neither batchgeneratorsv2 nor MONAI; name a Python that has them in SUTURE_PYTHON")
        return 77
    image, labels = volume()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "image.npy", image)
        np.save(folder / "labels.npy", labels)
        compare = Comparison(sys.argv[1], folder)
        for operation, function, tolerance in OPERATIONS:
            for seed in range(4):
                plan = compare.plan(operation, seed)
                expected = np.asarray(function(torch.from_numpy(image.copy()), plan))
                compare.suture("run", operation, folder / "image.npy", folder / "plan.json", folder / "out")
                found = compare.result("image", np.float32, image.shape)
                worst = np.abs(found - expected).max() / np.ptp(image)
                compare.expect(f"{operation}, seed {seed}", worst <= tolerance, f"{worst:.2g} of the range")
        for seed in range(4 if BATCHGENERATORS else 0):
            plan = compare.plan("spatial", seed)
            patch, segmentation = turned(torch.from_numpy(image.copy()), labels, plan)
            compare.suture("run", "spatial", folder / "image.npy", folder / "plan.json", folder / "out",
                           folder / "labels.npy")
            found = compare.result("image", np.float32, patch.shape)
            worst = np.abs(found - patch.numpy()).max() / np.ptp(image)
            compare.expect(f"spatial, seed {seed}", worst <= 2e-5, f"{worst:.2g} of the range")
            # Votes within the rounding of half precision are ties there.
            other = np.mean(compare.result("labels", np.int16, segmentation.shape) != segmentation.numpy())
            compare.expect(f"labels, seed {seed}", other <= 2e-3, f"{other:.2g} of the voxels")
    left_out = [name for name, there in (("batchgeneratorsv2", BATCHGENERATORS), ("MONAI", MONAI)) if not there]
    print(f"{compare.count} results, {compare.wrong} differ" + (f"; not there: {', '.join(left_out)}" if left_out else ""))
    return compare.wrong != 0


if __name__ == "__main__":
    sys.exit(main())
